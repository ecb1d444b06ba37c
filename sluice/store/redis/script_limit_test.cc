#include "sluice/store/redis/script_limit.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sluice/algorithm/state.h"
#include "sluice/store/redis/internal/convert.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;

TEST(ScriptLimitTest, WhatItIsCalledTellsWhatItsStatesMean) {
  const std::vector<std::pair<Limit, std::string>> limits = {
      {*token_bucket::MakeLimit({100, 60s}, 20), "1t100/6e10/20 "},
      {*token_bucket::MakeLimit({7, 60s}, 4'000'000), "1t7/6e10/4e6 "},
      {*leaky_bucket::MakeLimit({10, 1s}, 5, 10s), "1l10/1e9/6 "},
      {*fixed_window::MakeLimit(10, 1500ms, fixed_window::Align::kClock, 250ms), "1w15e5/25e4 "},
      {*fixed_window::MakeLimit(10, 1s, fixed_window::Align::kFirstHit), "1f1e6 "},
      {*sliding_window_counter::MakeLimit(10, 1h), "1c36e8/0 "},
      {*calendar::MakeLimit(10, calendar::Period::kMonth, "Europe/Berlin"), "1qm/Europe/Berlin "},
      {*sliding_window_strict::MakeLimit(10, 1min, 16), "1s375e4/16 "},
      {*sliding_window_log::MakeLimit(10, 1h, true), "1g3600000000,2 "},
  };
  for (const auto& [limit, prefix] : limits) {
    SCOPED_TRACE(prefix);
    const absl::StatusOr<ScriptLimit> made = ScriptLimit::Make(limit);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->prefix(), prefix);
    std::size_t size = 0;
    const absl::StatusOr<Limit> back = LimitOf(prefix + "1 2 3", &size);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(size, prefix.size());
    EXPECT_EQ(ScriptLimit::Make(*back)->prefix(), prefix);
  }
  EXPECT_EQ(ScriptLimit::Make(*concurrency::MakeLimit(10, 1s))->prefix(), "1n");
}

TEST(ScriptLimitTest, LengthsAreWholeMicrosecondsAndNeverShorter) {
  const auto window = ScriptLimit::Make(*fixed_window::MakeLimit(10, 1'000'001ns));
  EXPECT_EQ(std::get<fixed_window::Limit>(window->limit()).window, 1'001us);
  const auto strict = ScriptLimit::Make(*sliding_window_strict::MakeLimit(10, 1s, 7));
  EXPECT_EQ(std::get<sliding_window_strict::Limit>(strict->limit()).step, 142'858us);
  auto shifted = *sliding_window_counter::MakeLimit(10, 1s);
  shifted.per_key_offset = true;
  EXPECT_EQ(ScriptLimit::Make(shifted)->PhaseOf(12'345'678) % 1us, 0ns);
}

TEST(ScriptLimitTest, RefusesWhatWouldNotBeExact) {
  EXPECT_FALSE(ScriptLimit::Make(*fixed_window::MakeLimit((1LL << 50) + 1, 1s)).ok());
  EXPECT_TRUE(ScriptLimit::Make(*fixed_window::MakeLimit(1LL << 50, 1s)).ok());
  EXPECT_FALSE(ScriptLimit::Make(*token_bucket::MakeLimit({1, 24h}, 36'600)).ok());
  EXPECT_TRUE(ScriptLimit::Make(*token_bucket::MakeLimit({1, 24h}, 36'000)).ok());
}

TEST(ScriptLimitTest, ReadsNoOtherText) {
  const ScriptLimit to = *ScriptLimit::Make(*token_bucket::MakeLimit({10, 1s}, 5));
  const Now now = NowOf(1'781'000'000'000'000);
  for (const std::string text : {"",
                                 "1",
                                 "999",
                                 "2t10/1e9/5 17",
                                 "1x10/1e9/5 17",
                                 "1t10/1e9/5",
                                 "1t10/1e9/5 ",
                                 "1t10/1e9/5 -1",
                                 "1t10/1e9/5 1 2",
                                 "1t10/1e9/5 99999999999999999999",
                                 "1t0/1e9/5 17",
                                 "1t10/1e99/5 17",
                                 "1t10/1e9/5e 17",
                                 "1w1e6/0 1",
                                 "1w1e6/2e6 1 1",
                                 "1w1e6/0p 1 1 1",
                                 "1c1e6/0 1 2",
                                 "1s1e6/61 1 1",
                                 "1s1e6/1 1 1 1 1 1",
                                 "1t10/1e9/5 17 0 0 0 18",
                                 "1t10/1e9/5 17 0 0 0 1 1",
                                 "1t10/1e9/5 17 0 0 0 ",
                                 "1qd/Nowhere/City 1 2 3",
                                 "1qx/UTC 1 2 3",
                                 "1g1000000,1 1 1",
                                 "1g1000000,1 1 1;x",
                                 "1g1000000,1 1 1;",
                                 "1n 3",
                                 "what ever;0"}) {
    SCOPED_TRACE(text);
    const absl::StatusOr<Conversion> converted = ConvertState(text, to, now, 0);
    EXPECT_EQ(converted.status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(ScriptLimitTest, ConvertsAsInMemory) {
  const std::int64_t wall_us = 1'781'000'000'000'000;
  const Now now = NowOf(wall_us);
  const std::int64_t steady = SteadyUs(now.steady);
  const auto bucket = [](std::int64_t count, std::uint64_t burst) {
    return *ScriptLimit::Make(*token_bucket::MakeLimit({count, 1s}, burst));
  };
  const auto at = [&](std::int64_t us) { return std::to_string(steady + us); };
  const struct {
    std::string from;
    ScriptLimit to;
    std::string expected;
  } rows[] = {
      // The debt stays, in units, up to the new burst.
      {"1t10/1e9/5 " + at(200'000), bucket(20, 5), "1t20/1e9/5 " + at(100'000)},
      {"1t10/1e9/5 " + at(500'000), bucket(10, 2), "1t10/1e9/2 " + at(200'000)},
      {"1t10/1e9/5 " + at(-1), bucket(20, 5), ""},
      // What was undone counts on, a little more.
      {"1t10/1e9/5 " + at(200'000) + " 0 7 3", bucket(20, 5),
       "1t20/1e9/5 " + at(100'000) + " 0 8 0"},
      {"1l10/1e9/6 " + at(300'000), bucket(10, 5), "1t10/1e9/5 " + at(300'000)},
      {"1w1e6/0 1781000000 4", bucket(10, 5), "1t10/1e9/5 " + at(400'000)},
      {"1w1e6/0 1780999999 4", bucket(10, 5), ""},
      {"1c1e6/0 1781000000 0 9", bucket(10, 5), "1t10/1e9/5 " + at(500'000)},
      {"1g1000000,1 " + at(0) + " 3;3", bucket(10, 5), "1t10/1e9/5 " + at(300'000)},
      {"1w1e6/0 1781000000 4", *ScriptLimit::Make(*fixed_window::MakeLimit(3, 2s)),
       "1w2e6/0 890500000 3"},
      {"1w1e6/0 1781000000 4", *ScriptLimit::Make(*sliding_window_log::MakeLimit(3, 1s, true)),
       at(0) + ":3"},
      {"1t10/1e9/5 " + at(200'000), *ScriptLimit::Make(*sliding_window_strict::MakeLimit(9, 4s, 4)),
       "1s1e6/4 " + std::to_string(steady / 1'000'000) + " 2"},
      // Of a lease both what is owed now and what is owed at its end stay owed, in units.
      {"1t10/1e9/9 " + at(300'000) + " 0 0 0 " + at(100'000), bucket(100, 9),
       "1t100/1e9/9 " + at(120'000) + " 0 0 0 " + at(100'000)},
      {"1t10/1e9/9 " + at(300'000) + " 0 0 0 " + at(100'000), bucket(5, 9),
       "1t5/1e9/9 " + at(600'000) + " 0 0 0 " + at(100'000)},
      {"1t10/1e9/9 " + at(300'000) + " 0 0 0 " + at(0), bucket(5, 9), "1t5/1e9/9 " + at(600'000)},
      {"1t10/1e9/9 " + at(300'000) + " 0 0 0 " + at(100'000),
       *ScriptLimit::Make(*sliding_window_log::MakeLimit(9, 1s, true)), at(100'000) + ":3"},
      {"1t10/1e9/9 " + at(300'000) + " 0 0 0 " + at(100'000),
       *ScriptLimit::Make(*fixed_window::MakeLimit(9, 2s)), "1w2e6/0 890500000 3"},
      {"1g1000000,1 " + at(100'000) + " 3;3", bucket(10, 9),
       "1t10/1e9/9 " + at(400'000) + " 0 0 0 " + at(100'000)},
      // Further ahead than any lease is what the clock left that stepped back.
      {"1g1000000,1 " + at(9'000'000) + " 3;3",
       *ScriptLimit::Make(*sliding_window_log::MakeLimit(9, 2s, true)), at(500'000) + ":3"},
      // Until the end of its sub-window.
      {"1s1e5/10 " + std::to_string(steady / 100'000 + 2) + " 2 0 1",
       *ScriptLimit::Make(*sliding_window_log::MakeLimit(9, 2s, true)), at(299'999) + ":3"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.from);
    const absl::StatusOr<Conversion> converted = ConvertState(row.from, row.to, now, 0);
    ASSERT_TRUE(converted.ok()) << converted.status();
    EXPECT_EQ(converted->converted, row.expected);
    EXPECT_EQ(converted->expected, row.from.substr(0, row.from.find(';')));
  }
}

TEST(ScriptLimitTest, AKeyWithEdgesOfItsOwnOwesByThem) {
  const Now now = NowOf(1'781'000'000'000'000);
  const std::uint32_t half = 1U << 31;  // edges half a second later
  const std::string in_force = "1w1e6/0p 1780999999 4";
  const ScriptLimit common = *ScriptLimit::Make(*fixed_window::MakeLimit(9, 2s));
  EXPECT_EQ(ConvertState(in_force, common, now, half)->converted, "1w2e6/0 890500000 4");
  EXPECT_EQ(ConvertState(in_force, common, now, 0)->converted, "");
  auto own = *fixed_window::MakeLimit(9, 2s);
  own.per_key_offset = true;
  EXPECT_EQ(ConvertState("1w1e6/0 1781000000 4", *ScriptLimit::Make(own), now, half)->converted,
            "1w2e6/0p 890499999 4");
}

}  // namespace
}  // namespace sluice::redis
