// Several claims of one request: all are charged, or none.

#include <array>

#include "tests/conformance/store_under_test.h"

namespace sluice::conformance {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TEST_P(StoreConformance, ChargesNothingAnywhereWhenOneRuleDenies) {
  const Registered& own = Register(TokenBucket(10, minutes{1}, 10));
  for (const NamedLimit& other : EveryRate(3, minutes{1})) {
    SCOPED_TRACE(other.name);
    const Registered& narrow = Register(other.limit);
    for (int i = 0; i < 3; ++i) {
      std::array claims = {ClaimOn("own " + other.name, own), ClaimOn(other.name, narrow)};
      EXPECT_TRUE(AskAll(claims));
    }
    // In either order of the claims.
    std::array first = {ClaimOn("own " + other.name, own), ClaimOn(other.name, narrow)};
    std::array last = {ClaimOn(other.name, narrow), ClaimOn("own " + other.name, own)};
    EXPECT_FALSE(AskAll(first));
    EXPECT_FALSE(AskAll(last));
    EXPECT_TRUE(first[0].decision.allowed());    // it had room itself
    EXPECT_EQ(first[0].decision.remaining, 7u);  // and keeps it
    EXPECT_EQ(first[0].receipt.units, 0u);
    EXPECT_FALSE(first[1].decision.allowed());
    EXPECT_GT(first[1].decision.retry_after, Duration{0});
    EXPECT_EQ(Remaining("own " + other.name, own), 7u);
    EXPECT_EQ(Remaining(other.name, narrow), 0u);
  }
}

// The special route is full after three requests of five; the group's quota is not touched by the
// two that it denied.
TEST_P(StoreConformance, DeniedSpecialRuleLeavesTheGroupsQuotaAlone) {
  const Registered& group = Register(FixedWindow(10, minutes{1}));
  const Registered& special = Register(FixedWindow(3, minutes{1}));
  int allowed = 0;
  for (int i = 0; i < 5; ++i) {
    std::array claims = {ClaimOn("group", group), ClaimOn("special", special)};
    allowed += AskAll(claims) ? 1 : 0;
  }
  EXPECT_EQ(allowed, 3);
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(Ask("group", group).decision.allowed()) << i;
  EXPECT_FALSE(Ask("group", group).decision.allowed());
}

TEST_P(StoreConformance, TheSameKeyTwiceInOneRequestIsChargedTwiceOrNotAtAll) {
  for (const NamedLimit& named : EveryRate(3, minutes{1})) {
    SCOPED_TRACE(named.name);
    const Registered& limit = Register(named.limit);
    std::array claims = {ClaimOn(named.name, limit), ClaimOn(named.name, limit)};
    EXPECT_TRUE(AskAll(claims));
    EXPECT_EQ(Remaining(named.name, limit), 1u);
    EXPECT_FALSE(AskAll(claims));
    EXPECT_EQ(Remaining(named.name, limit), 1u);
  }
}

TEST_P(StoreConformance, ShadowClaimNeverDeniesAndIsChargedOnlyWithTheOthers) {
  const Registered& binding = Register(TokenBucket(4, minutes{1}, 4));
  for (const NamedLimit& named : EveryRate(2, minutes{1})) {
    SCOPED_TRACE(named.name);
    const Registered& shadow = Register(named.limit);
    const struct {
      bool allowed;
      bool shadow_has_room;
      std::uint64_t binding_left;
      std::uint64_t shadow_left;
    } steps[] = {
        {true, true, 3, 1},  {true, true, 2, 0},
        {true, false, 1, 0},  // would be denied; is not, and takes nothing from the shadow rule
        {true, false, 0, 0}, {false, false, 0, 0},
    };
    for (const auto& step : steps) {
      std::array claims = {ClaimOn(named.name, shadow, 1, ClaimKind::kShadow),
                           ClaimOn("binding " + named.name, binding)};
      EXPECT_EQ(AskAll(claims), step.allowed);
      EXPECT_EQ(claims[0].decision.allowed(), step.shadow_has_room);
      EXPECT_EQ(claims[0].decision.remaining, step.shadow_left);
      EXPECT_EQ(claims[1].decision.remaining, step.binding_left);
      EXPECT_EQ(claims[0].receipt.units, step.shadow_has_room ? 1u : 0u);
    }
    // A binding rule without room: the shadow rule has some, and keeps it.
    std::array claims = {ClaimOn("binding " + named.name, binding),
                         ClaimOn(named.name + " fresh", shadow, 1, ClaimKind::kShadow)};
    EXPECT_FALSE(AskAll(claims));
    EXPECT_TRUE(claims[1].decision.allowed());
    EXPECT_EQ(claims[1].receipt.units, 0u);
    EXPECT_EQ(Remaining(named.name + " fresh", shadow), 2u);
  }
}

TEST_P(StoreConformance, SoftClaimIsAlwaysChargedAndOwesAtMostOneBurstBeyond) {
  for (const NamedLimit& named : EveryRate(2, minutes{1})) {
    SCOPED_TRACE(named.name);
    const Registered& limit = Register(named.limit);
    std::uint64_t charged = 0;
    for (int i = 0; i < 10; ++i) {
      std::array claims = {ClaimOn(named.name, limit, 1, ClaimKind::kSoft)};
      EXPECT_TRUE(AskAll(claims));
      EXPECT_EQ(claims[0].decision.allowed(), i < 2) << i;
      charged += claims[0].receipt.units;
    }
    EXPECT_EQ(charged, 4u);
    EXPECT_FALSE(Ask(named.name, limit).decision.allowed());
  }
}

TEST_P(StoreConformance, SoftClaimIsChargedAlsoWhenAnotherRuleDenies) {
  const Registered& none = Register(FixedWindow(0, minutes{1}));
  const Registered& soft = Register(TokenBucket(5, minutes{1}, 5));
  std::array claims = {ClaimOn("none", none), ClaimOn("ann", soft, 2, ClaimKind::kSoft)};
  EXPECT_FALSE(AskAll(claims));
  EXPECT_EQ(Remaining("ann", soft), 3u);
}

TEST_P(StoreConformance, LookDecidesForTheRequestAndIsNeverCharged) {
  const Registered& charged = Register(TokenBucket(9, minutes{1}, 9));
  for (const NamedLimit& named : EveryRate(2, minutes{1})) {
    SCOPED_TRACE(named.name);
    const Registered& looked = Register(named.limit);
    for (int i = 0; i < 3; ++i) {
      std::array claims = {ClaimOn("charged " + named.name, charged),
                           ClaimOn(named.name, looked, 2, ClaimKind::kLook)};
      EXPECT_TRUE(AskAll(claims));
      EXPECT_EQ(claims[1].decision.remaining, 2u);
      EXPECT_EQ(claims[1].receipt.units, 0u);
    }
    EXPECT_TRUE(Ask(named.name, looked, 2).decision.allowed());
    std::array claims = {ClaimOn("charged " + named.name, charged),
                         ClaimOn(named.name, looked, 2, ClaimKind::kLook)};
    EXPECT_FALSE(AskAll(claims));
    EXPECT_EQ(claims[1].decision.remaining, 0u);
    EXPECT_EQ(Remaining("charged " + named.name, charged), 6u);
  }
}

TEST_P(StoreConformance, ShadowLookIsDecidedAndNothingElse) {
  for (const NamedLimit& named : EveryRate(2, minutes{1})) {
    SCOPED_TRACE(named.name);
    const Registered& binding = Register(TokenBucket(9, minutes{1}, 9));
    const Registered& looked = Register(named.limit);
    const std::string other = "binding " + named.name;
    std::array claims = {ClaimOn(named.name, looked, 1, ClaimKind::kShadowLook),
                         ClaimOn(other, binding)};
    claims[0].charge_denied = true;
    EXPECT_TRUE(AskAll(claims));
    EXPECT_TRUE(claims[0].decision.allowed());
    EXPECT_EQ(claims[0].decision.remaining, 2u);
    EXPECT_EQ(claims[0].receipt.units, 0u);

    // Without room it says so; the request passes all the same, and the key owes no more.
    EXPECT_TRUE(Ask(named.name, looked).decision.allowed());
    EXPECT_TRUE(Ask(named.name, looked).decision.allowed());
    const Duration wait = Ask(named.name, looked).decision.retry_after;
    EXPECT_TRUE(AskAll(claims));
    EXPECT_EQ(claims[0].decision.verdict, Verdict::kLimited);
    EXPECT_EQ(claims[0].decision.retry_after, wait);
    EXPECT_EQ(claims[0].receipt.units, 0u);
    EXPECT_EQ(Remaining(other, binding), 7u);
  }
}

TEST_P(StoreConformance, ChargeDeniedChargesWhoeverDenied) {
  const Registered& none = Register(FixedWindow(0, minutes{1}));
  for (const NamedLimit& named : EveryRate(2, minutes{1})) {
    SCOPED_TRACE(named.name);
    const Registered& limit = Register(named.limit);
    // Denied by another rule: charged within the limit.
    std::array claims = {ClaimOn("none", none), ClaimOn(named.name, limit)};
    claims[1].charge_denied = true;
    EXPECT_FALSE(AskAll(claims));
    EXPECT_EQ(claims[1].receipt.units, 1u);
    EXPECT_EQ(Remaining(named.name, limit), 1u);
    // By itself: one that has room, and two that have none and are charged beyond.
    for (int i = 0; i < 3; ++i) {
      std::array own = {ClaimOn(named.name, limit)};
      own[0].charge_denied = true;
      EXPECT_EQ(AskAll(own), i == 0) << i;
      EXPECT_EQ(own[0].receipt.units, 1u) << i;
      EXPECT_EQ(own[0].decision.remaining, 0u) << i;
    }
    // Charged once when it is allowed and has the flag.
    std::array fresh = {ClaimOn(named.name + " fresh", limit)};
    fresh[0].charge_denied = true;
    EXPECT_TRUE(AskAll(fresh));
    EXPECT_EQ(Remaining(named.name + " fresh", limit), 1u);
  }
}

// Each second: 6, 5 and 8 requests of a client that may make 5. Denials are not charged, so that
// each second it gets its 5.
TEST_P(StoreConformance, SteadyClientOverItsLimitIsLetInAgainEachWindow) {
  const Registered& limit = Register(FixedWindow(5, seconds{1}));
  const int sent[] = {6, 5, 8};
  const int denied[] = {1, 0, 3};
  for (int second = 0; second < 3; ++second) {
    int no = 0;
    for (int i = 0; i < sent[second]; ++i) no += Ask("ann", limit).decision.allowed() ? 0 : 1;
    EXPECT_EQ(no, denied[second]) << second;
    clock_.Advance(seconds{1});
  }
}

TEST_P(StoreConformance, CostAboveTheCapacityNeverPassesAndTakesNothing) {
  for (const NamedLimit& named : EveryRate(3, minutes{1})) {
    SCOPED_TRACE(named.name);
    const Registered& limit = Register(named.limit);
    EXPECT_EQ(Ask(named.name, limit, 4).decision.verdict, Verdict::kNever);
    EXPECT_EQ(Ask(named.name, limit, 4).decision.retry_after, kNever);
    EXPECT_EQ(Ask(named.name, limit, 3).decision.remaining, 0u);
  }
}

TEST_P(StoreConformance, ManyGroupsInOneCallDecideOneAfterTheOther) {
  const Registered& limit = Register(TokenBucket(10, minutes{1}, 10));
  std::array<Claim, Store::kMaxBatch> claims;
  std::array<ClaimGroup, Store::kMaxBatch> groups;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    claims[i] = ClaimOn(i % 2 == 0 ? "ann" : "bob", limit);
    groups[i].claims = {&claims[i], 1};
  }
  store().Apply(groups, clock_.Read());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    EXPECT_EQ(groups[i].allowed, i < 20) << i;
    if (i < 20) {
      EXPECT_EQ(claims[i].decision.remaining, 9 - i / 2) << i;
    }
  }
}

// More claims than a store may want to look ahead for.
TEST_P(StoreConformance, OneRequestMayHaveVeryManyClaims) {
  const Registered& limit = Register(TokenBucket(2, minutes{1}, 2));
  std::vector<Claim> claims;
  for (int i = 0; i < 300; ++i) claims.push_back(ClaimOn("key " + std::to_string(i), limit));
  EXPECT_TRUE(AskAll(claims));
  EXPECT_TRUE(AskAll(claims));
  EXPECT_TRUE(Ask("key 299", Register(TokenBucket(3, minutes{1}, 3))).decision.allowed());
  EXPECT_FALSE(AskAll(claims));
  EXPECT_EQ(Remaining("key 0", limit), 0u);
}

}  // namespace
}  // namespace sluice::conformance
