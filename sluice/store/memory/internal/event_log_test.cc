#include "sluice/store/memory/internal/event_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

namespace sluice::memory {
namespace {

using Event = sliding_window_log::Event;

class EventLogTest : public ::testing::TestWithParam<bool> {
 protected:
  EventLogTest() : arena_(1 << 16) {
    EXPECT_TRUE(arena_.Open().ok());
    head_ = arena_.Take();
    EventLog::Init(arena_, head_);
  }
  [[nodiscard]] bool weighted() const { return GetParam(); }

  // The log again, as each call of the store opens it.
  void ExpectEqual(const std::deque<Event>& right) {
    const EventLog log(arena_, head_, weighted());
    ASSERT_EQ(log.size(), right.size());
    std::uint64_t sum = 0;
    for (const Event& event : right) sum += event.cost;
    EXPECT_EQ(log.sum(), sum);
    for (std::size_t i = 0; i < right.size(); ++i) EXPECT_EQ(log.at(i), right[i]) << i;
    for (std::size_t i = right.size(); i-- > 0;) EXPECT_EQ(log.at(i), right[i]) << i;
  }

  BlockArena arena_;
  BlockNumber head_ = 0;
};

TEST_P(EventLogTest, KeepsWhatAQueueKeepsWhateverIsDoneToIt) {
  std::mt19937 engine(1);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  std::deque<Event> right;
  std::size_t longest = 0;
  // Longer and shorter by turns, so that blocks come and go at both ends.
  for (int step = 0; step < 20'000; ++step) {
    EventLog log(arena_, head_, weighted());
    const bool growing = step / 500 % 2 == 0;
    const std::uint32_t what = random() % 10;
    if (what < (growing ? 7u : 3u)) {
      const Event event{.stamp = random(), .cost = weighted() ? 1 + random() % 9 : 1};
      ASSERT_TRUE(log.Append(event));
      right.push_back(event);
    } else if (what < 8 && !right.empty()) {
      const bool much = !growing && random() % 20 == 0;
      const std::uint64_t many = 1 + random() % (much ? right.size() : 2);
      log.DropOldest(many);
      right.erase(right.begin(),
                  right.begin() + static_cast<std::ptrdiff_t>(std::min(many, right.size())));
    } else if (what == 8 && !right.empty()) {
      const std::size_t which = random() % right.size();
      log.erase(which);
      right.erase(right.begin() + static_cast<std::ptrdiff_t>(which));
    } else if (!right.empty() && weighted()) {
      const std::size_t which = random() % right.size();
      log.set_cost(which, 3);
      right[which].cost = 3;
    }
    head_ = log.head();
    if (step % 16 == 0) ExpectEqual(right);
    // No more blocks than the events need, one that is half left, and the head.
    const std::uint64_t per_block = weighted() ? 15 : 31;
    EXPECT_LE(arena_.used(), right.size() / per_block + 3);
    EXPECT_EQ(arena_.BlocksOf(head_), arena_.used());
    longest = std::max(longest, right.size());
  }
  EXPECT_GT(longest, 150u);
}

TEST_P(EventLogTest, AShortLogStaysInItsHead) {
  const std::uint32_t in_head = weighted() ? 12 : 24;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    EventLog log(arena_, head_, weighted());
    if (i >= in_head) log.DropOldest(1);
    ASSERT_TRUE(log.Append({.stamp = i, .cost = 1}));
    EXPECT_EQ(log.at(0).stamp, i >= in_head ? i - in_head + 1 : 0);
    head_ = log.head();
  }
  EXPECT_EQ(arena_.used(), 1u);
}

TEST_P(EventLogTest, TakesFourBytesAnEventOrEightWithACost) {
  constexpr std::uint32_t kEvents = 5'000;
  EventLog log(arena_, head_, weighted());
  for (std::uint32_t i = 0; i < kEvents / (weighted() ? 2 : 1); ++i) {
    ASSERT_TRUE(log.Append({.stamp = i, .cost = 1}));
  }
  const double bytes = static_cast<double>(arena_.used()) * sizeof(Block);
  EXPECT_LE(bytes / (weighted() ? kEvents / 2.0 : kEvents), weighted() ? 8.8 : 4.3);
  log.DropOldest(kEvents);
  EXPECT_EQ(arena_.used(), 1u);
}

TEST_P(EventLogTest, SaysWhenThereIsNoBlockLeft) {
  EventLog log(arena_, head_, weighted());
  std::uint64_t appended = 0;
  while (log.Append({.stamp = 7, .cost = 1})) ++appended;
  EXPECT_EQ(log.size(), appended);
  EXPECT_EQ(arena_.used(), arena_.capacity());
  // The oldest block makes room for the next.
  log.DropOldest(40);
  EXPECT_TRUE(log.Append({.stamp = 8, .cost = 1}));
  EXPECT_EQ(log.at(log.size() - 1).stamp, 8u);
}

INSTANTIATE_TEST_SUITE_P(BothForms, EventLogTest, ::testing::Bool(),
                         [](const auto& form) { return form.param ? "Weighted" : "Unit"; });

}  // namespace
}  // namespace sluice::memory
