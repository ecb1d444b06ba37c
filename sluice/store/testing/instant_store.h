// A remote store that takes no time of its own, to see what stands in front of one: it charges each
// claim, or denies those whose key begins with 'd', when the test or benchmark says so. Allocates
// nothing once it has waited for as many.
#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/store/remote_store.h"

namespace sluice {

// Of whatever was asked for.
class AnyLimit final : public RemoteLimit {
 public:
  const Limit& limit() const override { return limit_; }

 private:
  const Limit limit_ = *token_bucket::MakeLimit({10, std::chrono::seconds{1}}, 10);
};

class InstantStore final : public RemoteStore {
 public:
  absl::StatusOr<std::shared_ptr<const RemoteLimit>> Prepare(const Limit&) const override {
    return std::make_shared<const AnyLimit>();
  }
  absl::Status Apply(RemoteGroup& group, Time /*deadline*/, Done done) override {
    waiting_.push_back({&group, std::move(done)});
    return absl::OkStatus();
  }
  void Undo(const RemoteClaim& /*claim*/, std::uint64_t /*units*/) override { ++undone_; }
  void Renew(const RemoteClaim& /*claim*/) override {}

  void Answer() {
    answering_.swap(waiting_);
    for (Waiting& waiting : answering_) {
      waiting.group->allowed = true;
      for (RemoteClaim& claim : waiting.group->claims) {
        const bool denied = claim.key[0] == 'd';
        claim.decision.verdict = denied ? Verdict::kLimited : Verdict::kAllowed;
        claim.receipt.units = denied ? 0 : claim.cost;
        if (denied) waiting.group->allowed = false;
      }
      waiting.done(absl::OkStatus());
    }
    answering_.clear();
  }
  [[nodiscard]] int undone() const { return undone_; }

 private:
  struct Waiting {
    RemoteGroup* group;
    Done done;
  };
  std::vector<Waiting> waiting_;
  std::vector<Waiting> answering_;
  int undone_ = 0;
};

}  // namespace sluice
