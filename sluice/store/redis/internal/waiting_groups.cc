#include "sluice/store/redis/internal/waiting_groups.h"

#include <utility>

#include "sluice/base/steady_now.h"

namespace sluice::redis {

WaitingGroups::WaitingGroups(net::EventLoop& loop, const KeyOptions& keys, RedisCounters& counters,
                             std::size_t most)
    : keys_(keys),
      counters_(counters),
      most_(most),
      full_(absl::ResourceExhaustedError("too many requests wait for the store")),
      late_(absl::DeadlineExceededError("the store did not answer in time")),
      wake_(loop, [this] { EndLate(SteadyNow()); }) {}

AskedGroup* WaitingGroups::Free() {
  if (free_.empty()) {
    if (all_.size() >= most_) return nullptr;
    all_.push_back(std::make_unique<AskedGroup>());
    free_.push_back(all_.back().get());
  }
  return free_.back();
}

const absl::Status& WaitingGroups::Refuse(const absl::Status& why) {
  counters_.refused.Add();
  return why;
}

void WaitingGroups::Start(AskedGroup& free, Time deadline, RemoteStore::Done done) {
  free_.pop_back();
  free.done = std::move(done);
  free.since = SteadyNow();
  free.deadline = deadline;
  deadlines_.Add(free);
  wake_.At(deadline);
  counters_.waiting.Set(all_.size() - free_.size());
}

RemoteStore::Done WaitingGroups::StopWaiting(AskedGroup& asked, Time now) {
  deadlines_.Remove(asked);
  counters_.waits.Add(now - asked.since);
  return std::move(asked.done);
}

void WaitingGroups::End(AskedGroup& asked, const absl::Status& status, Time now) {
  RemoteStore::Done done;
  if (asked.group != nullptr) done = StopWaiting(asked, now);
  asked.group = nullptr;
  asked.kept.clear();
  free_.push_back(&asked);
  counters_.waiting.Set(all_.size() - free_.size());
  if (done) done(status);
}

void WaitingGroups::EndButKeep(AskedGroup& asked, Time now) {
  asked.KeepLimits();
  asked.group = nullptr;
  StopWaiting(asked, now)(late_);
}

void WaitingGroups::EndLate(Time now) {
  while (!deadlines_.empty() && deadlines_.first().deadline <= now) {
    counters_.late.Add();
    AskedGroup& asked = deadlines_.first();
    asked.holder->OnLate(asked, now);
  }
  if (!deadlines_.empty()) wake_.At(deadlines_.first().deadline);
}

}  // namespace sluice::redis
