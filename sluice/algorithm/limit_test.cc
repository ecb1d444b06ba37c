#include "sluice/algorithm/limit.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "sluice/algorithm/concurrency.h"
#include "sluice/algorithm/remote_bounds.h"
#include "sluice/algorithm/state.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

struct Row {
  Limit limit;
  std::string name;
  std::uint64_t capacity;
  Duration window;
  bool small;
};

std::vector<Row> Rows() {
  const Duration day = hours{24};
  return {
      {token_bucket::MakeLimit({3, seconds{1}}, 10).value(), "token-bucket", 10,
       Duration{3'333'333'334}, true},
      {leaky_bucket::MakeLimit({10, seconds{1}}, 4, seconds{10}).value(), "leaky-bucket", 5,
       Duration{500'000'000}, true},
      {fixed_window::MakeLimit(7, seconds{10}).value(), "fixed-window", 7, seconds{10}, true},
      {sliding_window_counter::MakeLimit(7, seconds{10}).value(), "sliding-window-counter", 7,
       seconds{10}, true},
      {calendar::MakeLimit(7, calendar::Period::kDay, "UTC").value(), "calendar", 7, day, true},
      {calendar::MakeLimit(7, calendar::Period::kWeek, "UTC").value(), "calendar", 7, 7 * day,
       true},
      {calendar::MakeLimit(7, calendar::Period::kMonth, "UTC").value(), "calendar", 7, 30 * day,
       true},
      {calendar::MakeLimit(7, calendar::Period::kYear, "UTC").value(), "calendar", 7, 365 * day,
       true},
      {sliding_window_strict::MakeLimit(7, seconds{10}).value(), "sliding-window-strict", 7,
       seconds{10}, false},
      {sliding_window_log::MakeLimit(7, seconds{10}, true).value(), "sliding-window-log", 7,
       seconds{10}, false},
      {concurrency::MakeLimit(7, seconds{10}).value(), "concurrency", 7, Duration{0}, false},
  };
}

TEST(LimitTest, TellsItsNameItsCapacityAndItsWindow) {
  for (const Row& row : Rows()) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(AlgorithmName(row.limit), row.name);
    EXPECT_EQ(CapacityOf(row.limit), row.capacity);
    EXPECT_EQ(WindowOf(row.limit), row.window);
    EXPECT_EQ(HasSmallState(row.limit), row.small);
  }
}

TEST(LimitTest, LeasesAreOfAlgorithmsThatCountWhateverWhenItWasSpent) {
  const std::set<std::string> can = {"token-bucket", "fixed-window", "calendar",
                                     "sliding-window-strict", "sliding-window-log"};
  for (const Row& row : Rows()) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(CanLease(row.limit), can.contains(row.name));
    EXPECT_EQ(LongestLease(row.limit), row.window / 2);
    if (row.name != "token-bucket") {
      EXPECT_EQ(MostLeased(row.limit, seconds{1}), CanLease(row.limit) ? row.capacity : 0);
    }
  }
}

TEST(LimitTest, EqualNumbersAreEqualLimits) {
  const std::vector<Row> once = Rows();
  const std::vector<Row> again = Rows();
  for (std::size_t i = 0; i < once.size(); ++i) {
    for (std::size_t j = 0; j < once.size(); ++j) {
      EXPECT_EQ(once[i].limit == again[j].limit, i == j);
    }
  }
}

TEST(LimitTest, AStateOfAnotherAlgorithmCountsAsAbsent) {
  const Now now{Time{hours{5}}, WallTime{hours{5}}};
  const Limit bucket = Rows()[0].limit;
  const Limit window = Rows()[2].limit;
  const SmallState used = Owing(window, 7, now);
  EXPECT_EQ(DebtOf(bucket, used, now), 0U);
  EXPECT_EQ(Decide(bucket, used, 10, now).decision.remaining, 0U);
  EXPECT_EQ(Undo(bucket, used, Receipt{.units = 1}, 1, now, 0).next, used);
}

TEST(ConcurrencyTest, LimitsAreSlotsAndTimesToLiveAreNoLongerThanACentury) {
  EXPECT_TRUE(concurrency::MakeLimit(4'294'967'295, Duration{0}).ok());
  EXPECT_FALSE(concurrency::MakeLimit(4'294'967'296, Duration{0}).ok());
  EXPECT_FALSE(concurrency::MakeLimit(-1, Duration{0}).ok());
  EXPECT_FALSE(concurrency::MakeLimit(1, Duration{-1}).ok());
  EXPECT_FALSE(concurrency::MakeLimit(1, Duration::max()).ok());
}

TEST(ConcurrencyTest, TheWaitIsForTheEarliestEndsThatFreeEnough) {
  const auto limit = concurrency::MakeLimit(5, seconds{10}).value();
  const Time now{seconds{100}};
  const std::vector<concurrency::Slot> slots = {
      {now + seconds{1}, 1}, {now + seconds{2}, 3}, {now + seconds{9}, 1}};
  const struct {
    std::uint64_t cost;
    Duration wait;
  } rows[] = {{0, Duration{0}}, {1, seconds{1}}, {2, seconds{2}},
              {4, seconds{2}},  {5, seconds{9}}, {6, kNever}};
  for (const auto& row : rows) {
    EXPECT_EQ(concurrency::RetryAfter(limit, 5, row.cost, slots, now), row.wait) << row.cost;
  }
  EXPECT_EQ(concurrency::RetryAfter(limit, 2, 3, slots, now), Duration{0});  // it fits
  // In flight beyond what a smaller limit allows: all that must go first is waited for.
  const auto smaller = concurrency::MakeLimit(1, seconds{10}).value();
  EXPECT_EQ(concurrency::RetryAfter(smaller, 5, 1, slots, now), Duration{seconds{9}});
  // Without a time to live nobody knows.
  const auto for_ever = concurrency::MakeLimit(5, Duration{0}).value();
  EXPECT_EQ(concurrency::RetryAfter(for_ever, 5, 1, slots, now), kUnknown);
}

TEST(RemoteBoundsTest, NamesTheFieldThatIsTooLarge) {
  const auto why = [](const auto& made) {
    const absl::Status fits = FitsRemote(Limit(made.value()));
    return fits.ok() ? "" : std::string(fits.message().substr(0, fits.message().find(' ')));
  };
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  EXPECT_EQ(why(fixed_window::MakeLimit(kMost, seconds{1})), "");
  EXPECT_EQ(why(fixed_window::MakeLimit(kMost + 1, seconds{1})), "limit");
  EXPECT_EQ(why(calendar::MakeLimit(kMost + 1, calendar::Period::kDay, "UTC")), "limit");
  EXPECT_EQ(why(token_bucket::MakeLimit({1, hours{24}}, 36'525)), "");
  EXPECT_EQ(why(token_bucket::MakeLimit({1, hours{24}}, 36'526)), "burst");
  EXPECT_EQ(why(leaky_bucket::MakeLimit({1, hours{24}}, 36'524, hours{876'600})), "");
  EXPECT_EQ(why(leaky_bucket::MakeLimit({1, hours{24}}, 36'525, hours{1'000'000})), "queue");
  EXPECT_EQ(why(concurrency::MakeLimit(4'294'967'295, seconds{1})), "");
}

}  // namespace
}  // namespace sluice
