#include "sluice/store/testing/parts_store.h"

#include <utility>

namespace sluice {

PartsStore::PartsStore(Store& counters, std::size_t parts, Now now) {
  for (std::size_t i = 0; i < parts; ++i) {
    parts_.push_back(std::make_unique<SharedStore>(counters, now, &leases_));
  }
}

std::uint32_t PartsStore::PartOf(const RemoteClaim& claim) {
  return static_cast<std::uint32_t>(claim.key[claim.key.find(':') + 1] - '0');
}

absl::StatusOr<std::shared_ptr<const RemoteLimit>> PartsStore::Prepare(const Limit& limit) const {
  return parts_[0]->Prepare(limit);
}

absl::Status PartsStore::Apply(RemoteGroup& group, Time deadline, Done done) {
  const std::uint32_t part = PartOf(group.claims[0]);
  for (const RemoteClaim& claim : group.claims) {
    if (PartOf(claim) != part) return absl::InternalError("a group over several parts");
  }
  return parts_[part]->Apply(group, deadline, std::move(done));
}

void PartsStore::Undo(const RemoteClaim& claim, std::uint64_t units) {
  if (!loses_undos_) parts_[PartOf(claim)]->Undo(claim, units);
}

void PartsStore::Renew(const RemoteClaim& claim) { parts_[PartOf(claim)]->Renew(claim); }

void PartsStore::Answer(Now now) {
  for (const auto& part : parts_) part->Answer(now);
}

void PartsStore::SetNow(Now now) {
  for (const auto& part : parts_) part->SetNow(now);
}

}  // namespace sluice
