// A remote store for tests: the counters of a local one, answered when the test says so.
//
//   std::unique_ptr<MemoryStore> counters = ...;     // what all nodes see
//   SharedStore node_a(*counters), node_b(*counters);
//   ... limiter of node A: Check() ...
//   node_a.Answer(clock.Read());                     // or
//   node_a.Fail(absl::DeadlineExceededError(""))
//
// Where several nodes lease, they also share what was leased:
//
//   SharedLeases leases;
//   SharedStore node_a(*counters, now, &leases), node_b(*counters, now, &leases);
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "sluice/store/remote_store.h"
#include "sluice/store/store.h"

namespace sluice {

// What a local store does not know of leases. Token bucket: the latest end of a lease of each key.
// Log and strict counter: leases that are dated as of the moment of asking, and are dated anew as
// of their ends once these have come.
class SharedLeases {
 public:
  // Of a binding claim with a lease, alone in its group; `claim` is what `counters` know it as. The
  // decision, and when it was granted the receipt.
  void Decide(Store& counters, RemoteClaim& remote, Claim claim, Now now);
  void Undo(Store& counters, const RemoteClaim& remote, Claim claim, std::uint64_t units, Now now);
  // Before anything else at `now`.
  void DateAnew(Store& counters, Now now);

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  struct Dated {
    std::shared_ptr<const RemoteLimit> limit;  // of the claim
    Claim claim;                               // its receipt: of what is charged now
    std::uint64_t left;
    Now end;
    bool anew;
  };
  void DecideBucket(Store& counters, RemoteClaim& remote, Claim& claim, Now now);

  std::map<Key, Time> latest_end_;
  std::vector<Dated> dated_;  // a receipt's `undone_before` is which, from 1 on
};

class SharedStore final : public RemoteStore {
 public:
  // `leases`: null: of this node alone.
  explicit SharedStore(Store& counters, Now now = {}, SharedLeases* leases = nullptr)
      : counters_(counters), now_(now), leases_(leases == nullptr ? own_leases_ : *leases) {}

  absl::StatusOr<std::shared_ptr<const RemoteLimit>> Prepare(const Limit& limit) const override;
  absl::Status Apply(RemoteGroup& group, Time deadline, Done done) override;
  void Undo(const RemoteClaim& claim, std::uint64_t units) override;
  void Renew(const RemoteClaim& claim) override;

  // Answers all that wait, in the order in which they came.
  void Answer(Now now);
  // The same without a decision. `charged`: they were decided and charged, and the answer was lost.
  void Fail(const absl::Status& status, bool charged = false);
  // Not OK: from now on Apply() says so at once.
  void Refuse(absl::Status status) { refusal_ = std::move(status); }
  // At which Undo() and Renew() take place.
  void SetNow(Now now) { now_ = now; }

  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] std::size_t asked() const { return asked_; }
  [[nodiscard]] std::size_t undone() const { return undone_; }
  [[nodiscard]] std::size_t renewed() const { return renewed_; }

 private:
  struct Waiting {
    RemoteGroup* group;
    Done done;
  };

  void Decide(RemoteGroup& group);

  Store& counters_;
  Now now_;
  SharedLeases own_leases_;
  SharedLeases& leases_;
  absl::Status refusal_;
  std::vector<Waiting> waiting_;
  std::size_t asked_ = 0;
  std::size_t undone_ = 0;
  std::size_t renewed_ = 0;
};

}  // namespace sluice
