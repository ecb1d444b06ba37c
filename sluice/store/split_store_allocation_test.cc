// Splitting a request over parts takes nothing from the heap once it has been done before: a
// counting operator new stands behind this whole program.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/store/split_store.h"
#include "tests/allocations/counting_new.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

class AnyLimit final : public RemoteLimit {
 public:
  const Limit& limit() const override { return limit_; }

 private:
  const Limit limit_ = *token_bucket::MakeLimit({10, 1s}, 10);
};

// Charges each claim, or denies those whose key begins with 'd'. Allocates nothing.
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

TEST(SplitStoreAllocations, ASplitTakesNothingFromTheHeap) {
  InstantStore inner;
  SplitStore store(inner, [](const RemoteClaim& claim) {
    return static_cast<std::uint32_t>(claim.key[1] - '0');
  });
  const std::shared_ptr<const RemoteLimit> limit = *store.Prepare({});
  // Of one part; of three; of two, one of which vetoes.
  std::array<RemoteClaim, 7> claims;
  constexpr std::array<std::string_view, 7> kKeys = {"a1", "a1", "b2", "c3", "e1", "d2", "f1"};
  for (std::size_t i = 0; i < claims.size(); ++i) {
    claims[i].key = kKeys[i];
    claims[i].limit = limit.get();
  }
  const std::span<RemoteClaim> all(claims);
  std::array<RemoteGroup, 3> groups = {{{.claims = all.subspan(0, 1)},
                                        {.claims = all.subspan(1, 3)},
                                        {.claims = all.subspan(4, 3)}}};
  int answers = 0;
  const auto round = [&] {
    for (RemoteGroup& group : groups) {
      EXPECT_TRUE(
          store.Apply(group, Time::max(), [&answers](const absl::Status&) { ++answers; }).ok());
    }
    inner.Answer();
  };
  CountAllocationsOfThisThread();
  for (int i = 0; i < 3; ++i) round();
  const std::uint64_t before = CountedAllocations();
  for (int i = 0; i < 1000; ++i) round();
  EXPECT_EQ(CountedAllocations(), before);
  EXPECT_EQ(answers, 3 * 1003);
  EXPECT_EQ(inner.undone(), 2 * 1003);
  EXPECT_TRUE(groups[1].allowed);
  EXPECT_FALSE(groups[2].allowed);
}

}  // namespace
}  // namespace sluice
