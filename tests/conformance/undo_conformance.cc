// Giving back, slots, and keys.

#include <array>

#include "tests/conformance/store_under_test.h"

namespace sluice::conformance {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TEST_P(StoreConformance, UndoGivesBackOnce) {
  for (const NamedLimit& named : EveryRate(5, minutes{1})) {
    SCOPED_TRACE(named.name);
    const Registered& limit = Register(named.limit);
    Claim claim = Ask(named.name, limit, 3);
    ASSERT_EQ(claim.receipt.units, 3u);
    store().Undo(claim, 3, clock_.Read());
    EXPECT_EQ(claim.receipt.units, 0u);
    EXPECT_EQ(Remaining(named.name, limit), 5u);
    EXPECT_TRUE(Ask(named.name, limit, 4).decision.allowed());
    store().Undo(claim, 3, clock_.Read());
    EXPECT_EQ(Remaining(named.name, limit), 1u);
  }
}

TEST_P(StoreConformance, UndoOfAPartLeavesTheRestCharged) {
  for (const NamedLimit& named : EveryRate(5, minutes{1})) {
    SCOPED_TRACE(named.name);
    const Registered& limit = Register(named.limit);
    Claim claim = Ask(named.name, limit, 4);
    store().Undo(claim, 3, clock_.Read());
    EXPECT_EQ(claim.receipt.units, 0u);
    EXPECT_EQ(Remaining(named.name, limit), 4u);
  }
}

TEST_P(StoreConformance, UndoOfNothingDoesNothing) {
  for (const NamedLimit& named : EveryRate(2, minutes{1})) {
    SCOPED_TRACE(named.name);
    const Registered& limit = Register(named.limit);
    ASSERT_TRUE(Ask(named.name, limit, 2).decision.allowed());
    Claim denied = Ask(named.name, limit);
    store().Undo(denied, 1, clock_.Read());
    Claim looked = Ask(named.name, limit, 0);
    store().Undo(looked, 0, clock_.Read());
    Claim of_nobody = ClaimOn("nobody", limit);
    of_nobody.receipt.units = 1;
    store().Undo(of_nobody, 1, clock_.Read());
    EXPECT_EQ(Remaining(named.name, limit), 0u);
    EXPECT_EQ(Remaining("nobody", limit), 2u);
  }
}

TEST_P(StoreConformance, UndoAfterTheWindowMintsNothing) {
  for (const NamedLimit& named : EveryRate(5, minutes{1})) {
    SCOPED_TRACE(named.name);
    const Registered& limit = Register(named.limit);
    Claim slow = Ask(named.name, limit, 5);
    clock_.Advance(std::chrono::hours{49});
    int allowed = 0;
    for (int i = 0; i < 4; ++i) allowed += Ask(named.name, limit).decision.allowed() ? 1 : 0;
    store().Undo(slow, 5, clock_.Read());
    for (int i = 0; i < 4; ++i) allowed += Ask(named.name, limit).decision.allowed() ? 1 : 0;
    EXPECT_EQ(allowed, 5);
  }
}

TEST_P(StoreConformance, ConcurrencySlotsComeBackWhenReleased) {
  const Registered& limit = Register(Concurrency(100));
  for (int i = 0; i < 400; ++i) {
    Claim claim = Ask("10.0.0.1", limit);
    ASSERT_TRUE(claim.decision.allowed()) << i;
    store().Undo(claim, 1, clock_.Read());
  }
  EXPECT_EQ(Remaining("10.0.0.1", limit), 100u);
}

// Two in flight for an address, ten for the host: what the address denies must not stay
// counted at the host.
TEST_P(StoreConformance, RequestDeniedByOneConcurrencyRuleHoldsNothingInTheOther) {
  const Registered& host = Register(Concurrency(10));
  const Registered& address = Register(Concurrency(2));
  std::vector<Claim> held;
  for (int i = 0; i < 52; ++i) {
    std::array claims = {ClaimOn("host", host), ClaimOn("address", address)};
    EXPECT_EQ(AskAll(claims), i < 2) << i;
    if (i < 2) held.insert(held.end(), claims.begin(), claims.end());
  }
  EXPECT_EQ(Remaining("host", host), 8u);
  for (Claim& claim : held) store().Undo(claim, claim.receipt.units, clock_.Read());
  EXPECT_EQ(Remaining("host", host), 10u);
  EXPECT_EQ(Remaining("address", address), 2u);
}

TEST_P(StoreConformance, SlotLivesWhileItIsRenewedAndEndsByItselfOtherwise) {
  const Registered& limit = Register(Concurrency(1, seconds{10}));
  Claim holder = Ask("ann", limit);
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(seconds{9});
    EXPECT_TRUE(store().Renew(holder, clock_.Read()));
    const Claim other = Ask("ann", limit);
    EXPECT_FALSE(other.decision.allowed());
    EXPECT_EQ(other.decision.retry_after, Duration{seconds{10}});
  }
  clock_.Advance(seconds{10} - GetParam().tick);
  EXPECT_FALSE(Ask("ann", limit).decision.allowed());
  clock_.Advance(GetParam().tick);
  const Claim next = Ask("ann", limit);
  EXPECT_TRUE(next.decision.allowed());
  store().Undo(holder, 1, clock_.Read());  // too late: it is the next one's slot now
  EXPECT_FALSE(Ask("ann", limit).decision.allowed());
}

TEST_P(LocalStoreConformance, SlotThatIsOverIsNotRenewed) {
  const Registered& limit = Register(Concurrency(1, seconds{10}));
  const Claim holder = Ask("ann", limit);
  clock_.Advance(seconds{10});
  EXPECT_TRUE(Ask("ann", limit).decision.allowed());
  EXPECT_FALSE(store().Renew(holder, clock_.Read()));
}

TEST_P(StoreConformance, RetryOfALimitedSlotIsWhenEnoughSlotsHaveEnded) {
  const Registered& limit = Register(Concurrency(5, seconds{10}));
  Claim first = Ask("ann", limit, 2);
  clock_.Advance(seconds{1});
  (void)Ask("ann", limit, 2);
  clock_.Advance(seconds{1});
  EXPECT_EQ(Ask("ann", limit, 3).decision.retry_after, Duration{seconds{8}});
  EXPECT_EQ(Ask("ann", limit, 4).decision.retry_after, Duration{seconds{9}});
  // Renewed, the first one is the last to end.
  EXPECT_TRUE(store().Renew(first, clock_.Read()));
  EXPECT_EQ(Ask("ann", limit, 3).decision.retry_after, Duration{seconds{9}});
  EXPECT_EQ(Ask("ann", limit, 4).decision.retry_after, Duration{seconds{10}});
}

TEST_P(BoundedStoreConformance, NeverMoreSlotsThanTheStoreHasAndNoneIsForgotten) {
  Open(100, 50);
  const Registered& limit = Register(Concurrency(1));
  const Registered& ending = Register(Concurrency(1, seconds{5}));
  std::vector<Claim> held;
  for (int i = 0; i < 60; ++i) {
    Claim claim = Ask("key " + std::to_string(i), i < 40 ? limit : ending);
    EXPECT_EQ(claim.decision.allowed(), i < 50) << i;
    if (i >= 50) {
      EXPECT_EQ(claim.decision.verdict, Verdict::kLimited);
      EXPECT_EQ(claim.decision.retry_after, kUnknown);
      EXPECT_EQ(claim.receipt.units, 0u);
    }
    held.push_back(claim);
  }
  for (int i = 0; i < 40; ++i) {
    EXPECT_FALSE(Ask("key " + std::to_string(i), limit).decision.allowed()) << i;
  }
  // Those that ended make room although nobody meets their keys again.
  clock_.Advance(seconds{5});
  for (int i = 100; i < 110; ++i) {
    EXPECT_TRUE(Ask("key " + std::to_string(i), limit).decision.allowed()) << i;
  }
  EXPECT_FALSE(Ask("key 110", limit).decision.allowed());
  store().Undo(held[0], 1, clock_.Read());
  EXPECT_TRUE(Ask("key 110", limit).decision.allowed());
}

TEST_P(StoreConformance, SoftSlotsGoBeyondTheLimitAndComeBack) {
  const Registered& limit = Register(Concurrency(2));
  std::vector<Claim> held;
  for (int i = 0; i < 6; ++i) held.push_back(Ask("ann", limit, 1, ClaimKind::kSoft));
  std::uint64_t units = 0;
  for (const Claim& claim : held) units += claim.receipt.units;
  EXPECT_EQ(units, 4u);
  EXPECT_FALSE(Ask("ann", limit).decision.allowed());
  for (Claim& claim : held) store().Undo(claim, claim.receipt.units, clock_.Read());
  EXPECT_EQ(Remaining("ann", limit), 2u);
}

TEST_P(StoreConformance, BytesOfAKeyAreTakenAsTheyAre) {
  const Registered& limit = Register(FixedWindow(1, minutes{1}));
  using std::string_view_literals::operator""sv;
  std::vector<std::string> names = {"",
                                    "user name",
                                    "a\r\nDEL x",
                                    std::string("a\0b"sv),
                                    std::string("a\0"sv),
                                    "a",
                                    "\xff\xfe",
                                    "\xff",
                                    "\xed\xa0\x80",  // a lone surrogate
                                    "test_\xc3\xbcser",
                                    "test_user",
                                    "\xe3\x83\xa6\xe3\x83\x8b",
                                    "\xc3\xba",   // u with an acute accent, composed
                                    "u\xcc\x81",  // and decomposed
                                    std::string(65'536, 'k'),
                                    std::string(65'536, 'k') + "1",
                                    std::string(1 << 20, '\0')};
  for (int turn = 0; turn < 2; ++turn) {
    for (const std::string& name : names) {
      EXPECT_EQ(Ask(name, limit).decision.allowed(), turn == 0) << name.size() << " bytes";
    }
  }
}

TEST_P(StoreConformance, EachKeyOwesItsOwnDebt) {
  const Registered& limit = Register(TokenBucket(3, minutes{1}, 3));
  const int kKeys = Few(5'000);
  for (int i = 0; i < kKeys; ++i) {
    const auto cost = static_cast<std::uint64_t>(i % 4);
    EXPECT_TRUE(Ask("key " + std::to_string(i), limit, cost).decision.allowed());
  }
  for (int i = 0; i < kKeys; ++i) {
    EXPECT_EQ(Remaining("key " + std::to_string(i), limit), 3u - static_cast<unsigned>(i % 4)) << i;
  }
}

TEST_P(LocalStoreConformance, EqualLimitsHaveOneIdAsLongAsSomebodyUsesIt) {
  const Limit limit = TokenBucket(3, minutes{1}, 3);
  const LimitId first = store().Register(limit).value();
  EXPECT_EQ(store().Register(limit).value(), first);
  EXPECT_NE(store().Register(TokenBucket(4, minutes{1}, 4)).value(), first);
  store().Release(first, clock_.Read());
  EXPECT_EQ(store().Register(limit).value(), first);
}

}  // namespace
}  // namespace sluice::conformance
