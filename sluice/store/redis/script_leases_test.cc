// Leases in the script, moment by moment, under a clock of the test's own: what is kept, what comes
// back when, and what a lease leaves to others.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sluice/store/redis/testing/script_server.h"

namespace sluice::redis {
namespace {

using testing::Clock;
using testing::ScriptServer;
using namespace std::chrono_literals;

template <typename L>
ScriptLimit Made(const absl::StatusOr<L>& limit) {
  EXPECT_TRUE(limit.ok()) << limit.status();
  return *ScriptLimit::Make(*limit);
}

ScriptLimit Bucket() { return Made(token_bucket::MakeLimit({10, 1s}, 10)); }
ScriptLimit Log() { return Made(sliding_window_log::MakeLimit(10, 1s, true)); }
ScriptLimit Strict() { return Made(sliding_window_strict::MakeLimit(10, 1s, 4)); }
ScriptLimit Window() { return Made(fixed_window::MakeLimit(10, 1s)); }
ScriptLimit FirstHit() {
  return Made(fixed_window::MakeLimit(10, 1s, fixed_window::Align::kFirstHit));
}
ScriptLimit Day() { return Made(calendar::MakeLimit(10, calendar::Period::kDay, "UTC")); }

class ScriptLeasesTest : public ::testing::Test {
 protected:
  ScriptLeasesTest() : server_(Clock::kManual) { SetTime(0ms); }

  // From 3 h into a day of UTC on.
  void SetTime(Duration at) {
    server_.SetTime(kStartUs + at / 1us);
    server_.own_clock = NowOf(server_.time());
  }
  [[nodiscard]] static std::string Us(Duration at) {
    return absl::StrCat(SteadyUs(NowOf(kStartUs).steady + at));
  }

  ScriptClaim Ask(const ScriptLimit& limit, std::uint64_t cost, Duration lease = 0ms) {
    ScriptClaim claim{.key = "key", .limit = &limit, .cost = cost, .lease = lease};
    ScriptGroup group{.claims = {&claim, 1}};
    server_.Decide({&group, 1});
    EXPECT_EQ(group.state, ScriptGroup::State::kDone) << group.status;
    EXPECT_EQ(group.allowed, claim.decision.allowed());
    return claim;
  }
  bool Undo(const ScriptClaim& claim, std::uint64_t units) {
    ScriptUndo undo{.key = "key", .limit = claim.limit, .receipt = claim.receipt, .units = units};
    server_.Undo({&undo, 1});
    EXPECT_TRUE(undo.status.ok()) << undo.status;
    return undo.given_back;
  }
  std::uint64_t Remaining(const ScriptLimit& limit) { return Ask(limit, 0).decision.remaining; }
  // Behind the limit's numbers.
  std::string Text(const ScriptLimit& limit) {
    const std::string text(server_.Ask({"GET", "key"}).text());
    EXPECT_TRUE(text.starts_with(limit.prefix())) << text;
    return text.substr(std::min(text.size(), limit.prefix().size()));
  }
  // As the test's clock has it.
  Duration Ttl() { return server_.Ask({"PTTL", "key"}).integer() * 1ms - 24h; }

  static constexpr std::int64_t kStartUs = 1'781'060'400'000'000;
  ScriptServer server_;
};

TEST_F(ScriptLeasesTest, ABucketKeepsTheLatestEndUntilItIsOver) {
  const ScriptLimit limit = Bucket();
  (void)Ask(limit, 2, 300ms);
  EXPECT_EQ(Text(limit), Us(500ms) + " 0 0 0 " + Us(300ms));
  (void)Ask(limit, 1, 100ms);
  EXPECT_EQ(Text(limit), Us(600ms) + " 0 0 0 " + Us(300ms)) << "an earlier end changes nothing";
  SetTime(200ms);
  (void)Ask(limit, 1);
  EXPECT_EQ(Text(limit), Us(700ms) + " 0 0 0 " + Us(300ms));
  (void)Ask(limit, 1, 200ms);
  EXPECT_EQ(Text(limit), Us(800ms) + " 0 0 0 " + Us(400ms));
  SetTime(400ms);
  (void)Ask(limit, 1);
  EXPECT_EQ(Text(limit), Us(900ms));
}

TEST_F(ScriptLeasesTest, TextsFromBeforeThereWereLeasesAreRead) {
  const ScriptLimit limit = Bucket();
  for (const std::string& old : {Us(200ms), Us(200ms) + " 0 100000 0"}) {
    server_.Ask({"SET", "key", absl::StrCat(std::string(limit.prefix()), old)});
    const ScriptClaim lease = Ask(limit, 3, 300ms);
    EXPECT_EQ(lease.decision.remaining, 4U);
    EXPECT_EQ(lease.good_for, 300ms);
  }
}

TEST_F(ScriptLeasesTest, ATextThatNoVersionWroteIsLeftAlone) {
  const ScriptLimit limit = Bucket();
  // An end behind the instant; a number too many; none where there should be one.
  for (const std::string& wrong :
       {Us(200ms) + " 0 0 0 " + Us(300ms), Us(200ms) + " 0 0 0 1 1", Us(200ms) + " 0 0 0 "}) {
    const std::string text = absl::StrCat(std::string(limit.prefix()), wrong);
    server_.Ask({"SET", "key", text});
    ScriptClaim claim{.key = "key", .limit = &limit};
    ScriptGroup group{.claims = {&claim, 1}};
    server_.Decide({&group, 1});
    EXPECT_EQ(group.status.code(), absl::StatusCode::kDataLoss) << wrong;
    EXPECT_EQ(server_.Ask({"GET", "key"}).text(), text);
  }
}

TEST_F(ScriptLeasesTest, WhatIsNotSpentComesBackInPartsTheLaterTheLess) {
  const ScriptLimit limit = Bucket();
  const ScriptClaim lease = Ask(limit, 5, 300ms);
  EXPECT_EQ(lease.decision.remaining, 2U);
  EXPECT_TRUE(Undo(lease, 1));
  EXPECT_EQ(Remaining(limit), 3U);
  SetTime(300ms);
  EXPECT_EQ(Remaining(limit), 6U);
  EXPECT_TRUE(Undo(lease, 2));
  EXPECT_EQ(Remaining(limit), 8U);
  SetTime(400ms);
  EXPECT_EQ(Remaining(limit), 9U) << "one of those that were spent is paid back";
  EXPECT_FALSE(Undo(lease, 1)) << "and it may have been any";
  EXPECT_EQ(Remaining(limit), 9U);
}

TEST_F(ScriptLeasesTest, AnUndoOfAChargeReturnsNothingThatWillBePaidBackByALeasesEnd) {
  const ScriptLimit limit = Bucket();
  const ScriptClaim charge = Ask(limit, 4);
  (void)Ask(limit, 2, 300ms);
  EXPECT_EQ(Remaining(limit), 4U);
  EXPECT_TRUE(Undo(charge, 4));
  EXPECT_EQ(Remaining(limit), 5U);
}

TEST_F(ScriptLeasesTest, ALeaseThatIsDeniedSaysWhatRemainsAndWritesNothing) {
  for (const ScriptLimit& limit : {Bucket(), Log(), Strict(), Window(), FirstHit(), Day()}) {
    SCOPED_TRACE(std::string(limit.prefix()));
    server_.Ask({"DEL", "key"});
    (void)Ask(limit, 4);
    const std::string before(server_.Ask({"DUMP", "key"}).text());
    const ScriptClaim denied = Ask(limit, 7, 100ms);
    EXPECT_EQ(denied.decision.verdict, Verdict::kLimited);
    EXPECT_EQ(denied.decision.remaining, 6U);
    EXPECT_GT(denied.decision.retry_after, 0ms);
    EXPECT_EQ(denied.good_for, 0ms);
    EXPECT_EQ(denied.receipt.units, 0U);
    const ScriptClaim never = Ask(limit, 11, 100ms);
    EXPECT_EQ(never.decision.verdict, Verdict::kNever);
    EXPECT_EQ(never.decision.remaining, 6U);
    EXPECT_EQ(server_.Ask({"DUMP", "key"}).text(), before);
  }
}

TEST_F(ScriptLeasesTest, EveryKeyLivesUntilWhatWasLeasedIsPaidBack) {
  for (const ScriptLimit& limit : {Bucket(), Log(), Strict(), Window(), FirstHit(), Day()}) {
    SCOPED_TRACE(std::string(limit.prefix()));
    server_.Ask({"DEL", "key"});
    SetTime(0ms);
    const ScriptClaim lease = Ask(limit, 4, 400ms);
    ASSERT_TRUE(lease.decision.allowed());
    // Between the decision and our question the server's own clock goes on.
    EXPECT_GT(Ttl(), lease.decision.reset_after - 2s);
    EXPECT_LE(Ttl(), lease.decision.reset_after + 300ms);
    const Duration ttl = Ttl();
    SetTime(100ms);
    EXPECT_TRUE(Undo(lease, 4));
    EXPECT_EQ(Remaining(limit), limit.letter() == 't' ? 7U : 10U)
        << "of a bucket what is paid back within a lease goes unused";
    if (limit.letter() == 't') {
      EXPECT_GT(Ttl(), ttl - 2s) << "as its receipts";
    }
  }
}

TEST_F(ScriptLeasesTest, AReceiptIsWorthNothingOnAKeyThatBeganAnew) {
  for (const ScriptLimit& limit : {Bucket(), Log(), Strict(), Window(), FirstHit(), Day()}) {
    SCOPED_TRACE(std::string(limit.prefix()));
    SetTime(0ms);
    const ScriptClaim lease = Ask(limit, 4, 100ms);
    // By then it is over, and another has spent.
    SetTime(48h);
    server_.Ask({"DEL", "key"});
    (void)Ask(limit, 5);
    EXPECT_FALSE(Undo(lease, 4));
    EXPECT_EQ(Remaining(limit), 5U);
    server_.Ask({"DEL", "key"});
  }
}

TEST_F(ScriptLeasesTest, UnderOtherNumbersALeaseIsOwedAsOfItsEnd) {
  const ScriptLimit limits[] = {Bucket(), Log(), Strict()};
  const ScriptLimit others[] = {Made(token_bucket::MakeLimit({10, 1s}, 20)),
                                Made(sliding_window_log::MakeLimit(10, 2s, true)),
                                Made(sliding_window_strict::MakeLimit(10, 2s, 20))};
  for (const ScriptLimit& from : limits) {
    for (const ScriptLimit& to : others) {
      SCOPED_TRACE(absl::StrCat(std::string(from.prefix()), "to ", std::string(to.prefix())));
      server_.Ask({"DEL", "key"});
      SetTime(0ms);
      const ScriptClaim lease = Ask(from, 4, 400ms);
      ASSERT_TRUE(Ask(to, 1).decision.allowed());
      EXPECT_FALSE(Undo(lease, 4)) << "receipts are not carried over";
      // Spent right before its end, it counts for as long as what is charged then.
      SetTime(399'999us);
      const std::uint64_t left = Remaining(to);
      EXPECT_LE(left, CapacityOf(to.limit()) - 4);
      if (to.letter() == 't') continue;
      SetTime(2'399'999us);
      EXPECT_LE(Remaining(to), 6U);
      SetTime(3s);
      EXPECT_EQ(Remaining(to), 10U);
    }
  }
}

TEST_F(ScriptLeasesTest, WhatIsAheadIsCountedNowAndWhatIsBehindStaysCounted) {
  for (const ScriptLimit& limit : {Log(), Strict()}) {
    SCOPED_TRACE(std::string(limit.prefix()));
    server_.Ask({"DEL", "key"});
    SetTime(0ms);
    const ScriptClaim first = Ask(limit, 4);
    SetTime(800ms);
    // The lease lies ahead, so much that a counter of a window's sub-windows would forget the
    // charge.
    const ScriptClaim lease = Ask(limit, 4, 500ms);
    EXPECT_EQ(lease.decision.remaining, 2U);
    EXPECT_EQ(lease.good_for, 500ms);
    EXPECT_TRUE(Undo(first, 1)) << "it counts, so it can be given back";
    EXPECT_EQ(Ask(limit, 4).decision.verdict, Verdict::kLimited);
    EXPECT_EQ(Ask(limit, 3).decision.remaining, 0U);
    SetTime(1250ms);  // of the first charge a window and a sub-window
    EXPECT_EQ(Remaining(limit), 3U);
    SetTime(2299ms);
    EXPECT_EQ(Remaining(limit), 3U);
    EXPECT_TRUE(Undo(lease, 1));
    EXPECT_EQ(Remaining(limit), 4U);
    SetTime(2600ms);
    EXPECT_EQ(Remaining(limit), 10U);
    EXPECT_FALSE(Undo(lease, 1));
  }
}

TEST_F(ScriptLeasesTest, ALeaseEndsWithItsWindow) {
  for (const ScriptLimit& limit : {Window(), FirstHit()}) {
    SCOPED_TRACE(std::string(limit.prefix()));
    SetTime(0ms);
    (void)Ask(limit, 1);
    SetTime(900ms);
    const ScriptClaim lease = Ask(limit, 4, 300ms);
    EXPECT_EQ(lease.good_for, 100ms);
    EXPECT_TRUE(Undo(lease, 1));
    EXPECT_EQ(Remaining(limit), 6U);
    SetTime(1s);
    EXPECT_FALSE(Undo(lease, 1)) << "nothing of it in another window";
    EXPECT_EQ(Ask(limit, 4, 300ms).good_for, 300ms);
    server_.Ask({"DEL", "key"});
  }
  SetTime(21h - 1ms);
  const ScriptLimit day = Day();
  EXPECT_EQ(Ask(day, 4, 300ms).good_for, 1ms);
}

TEST_F(ScriptLeasesTest, ALeaseIsNoLongerThanHalfAWindow) {
  for (const ScriptLimit& limit : {Bucket(), Log(), Strict(), Window(), FirstHit()}) {
    SCOPED_TRACE(std::string(limit.prefix()));
    server_.Ask({"DEL", "key"});
    SetTime(0ms);
    EXPECT_EQ(Ask(limit, 4, 10s).good_for, 500ms);
    EXPECT_EQ(Remaining(limit), limit.letter() == 't' ? 1U : 6U);
  }
}

}  // namespace
}  // namespace sluice::redis
