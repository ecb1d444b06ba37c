// A remote store for tests: the counters of a local one, answered when the test says so.
//
//   std::unique_ptr<MemoryStore> counters = ...;     // what all nodes see
//   SharedStore node_a(*counters), node_b(*counters);
//   ... limiter of node A: Check() ...
//   node_a.Answer(clock.Read());                     // or
//   node_a.Fail(absl::DeadlineExceededError(""))
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "sluice/store/remote_store.h"
#include "sluice/store/store.h"

namespace sluice {

class SharedStore final : public RemoteStore {
 public:
  explicit SharedStore(Store& counters, Now now = {}) : counters_(counters), now_(now) {}

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
  absl::Status refusal_;
  std::vector<Waiting> waiting_;
  std::size_t asked_ = 0;
  std::size_t undone_ = 0;
  std::size_t renewed_ = 0;
};

}  // namespace sluice
