#include "sluice/algorithm/remote_bounds.h"

#include "absl/strings/str_cat.h"

namespace sluice {

absl::Status FitsRemote(const Limit& limit) {
  const auto* bucket = std::get_if<token_bucket::Limit>(&limit);
  const auto* queue = std::get_if<leaky_bucket::Limit>(&limit);
  if (queue != nullptr) bucket = &queue->pace;
  if (bucket != nullptr) {
    if (token_bucket::ToDuration(*bucket, bucket->capacity) <= kMostRemoteCapacity) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(queue != nullptr ? "queue" : "burst",
                     " takes longer than 100 years to pay back, which cannot be counted in Redis: ",
                     bucket->burst, " units at ", bucket->rate.count, " per ",
                     bucket->rate.period.count(), " ns"));
  }
  if (CapacityOf(limit) <= kMostRemoteUnits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("limit is ", CapacityOf(limit),
                                                 ", and Redis counts up to ", kMostRemoteUnits,
                                                 " units exactly"));
}

}  // namespace sluice
