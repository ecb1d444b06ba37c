// What every algorithm must answer, through a store.

#include <algorithm>
#include <map>

#include "tests/conformance/store_under_test.h"
#include "tests/vectors/vector_run.h"

namespace sluice::conformance {
namespace {

// A key under each limit of one vector.
class StoreSubject final : public vectors::Subject {
 public:
  StoreSubject(Store& store, std::vector<Claim> claims)
      : store_(store), claims_(std::move(claims)) {}

  std::vector<Decision> Acquire(std::uint64_t cost, Now now) override {
    return Apply(cost, now, ClaimKind::kBinding);
  }
  std::vector<Decision> Look(std::uint64_t cost, Now now) override {
    return Apply(cost, now, ClaimKind::kLook);
  }
  std::vector<Decision> Force(std::uint64_t cost, Now now) override {
    return Apply(cost, now, ClaimKind::kSoft);
  }

  void Undo(int charge, std::uint64_t units, Now now) override {
    // A part of a receipt, as if it had been a charge of its own.
    for (Claim claim : charges_.at(static_cast<std::size_t>(charge) - 1)) {
      store_.Undo(claim, units, now);
      EXPECT_EQ(claim.receipt.units, 0u);
    }
  }

  bool Release(int charge, Now now) override {
    const std::uint64_t before = Look(0, now)[0].remaining;
    const bool held = store_.Renew(charges_.at(static_cast<std::size_t>(charge) - 1)[0], now);
    Undo(charge, 1, now);
    EXPECT_GE(Look(0, now)[0].remaining, before);
    return held;
  }

  void Resize(const Limit& limit) override {
    resized_.push_back(std::make_unique<Limit>(limit));
    const absl::StatusOr<LimitId> id = store_.Register(limit);
    ASSERT_TRUE(id.ok()) << id.status();
    claims_[0].limit = resized_.back().get();
    claims_[0].limit_id = *id;
  }

 private:
  std::vector<Decision> Apply(std::uint64_t cost, Now now, ClaimKind kind) {
    for (Claim& claim : claims_) {
      claim.cost = cost;
      claim.kind = kind;
    }
    ClaimGroup group{.claims = claims_};
    store_.Apply({&group, 1}, now);
    std::vector<Decision> decisions;
    for (const Claim& claim : claims_) decisions.push_back(claim.decision);
    if (kind != ClaimKind::kLook && group.allowed && cost > 0) charges_.push_back(claims_);
    return decisions;
  }

  Store& store_;
  std::vector<Claim> claims_;
  std::vector<std::vector<Claim>> charges_;
  std::vector<std::unique_ptr<Limit>> resized_;
};

TEST_P(StoreConformance, AnswersAsTheVectorsSay) {
  int run = 0;
  for (const char* file :
       {"tests/vectors/algorithms.json", "tests/vectors/calendar_and_strict.json"}) {
    for (const vectors::Vector& vector : vectors::Read(file).vectors) {
      if (vector.later ||
          !std::ranges::all_of(vector.steps, GetParam().shows, &vectors::Step::now)) {
        continue;
      }
      std::vector<Claim> claims;
      for (const Limit& limit : vector.limits) {
        const std::string key = vector.id + " " + std::to_string(claims.size());
        claims.push_back(ClaimOn(key, Register(limit)));
      }
      StoreSubject subject(store(), claims);
      vectors::Run(vector, subject, vectors::ResolutionOf(vector));
      ++run;
    }
  }
  EXPECT_GE(run, GetParam().vectors);
}

}  // namespace
}  // namespace sluice::conformance
