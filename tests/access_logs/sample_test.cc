// The committed sample of a real access log. An independent model in exact fractions gave the
// counts that are expected.
#include <gtest/gtest.h>

#include "tests/access_logs/log_replay.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

std::vector<LoggedRequest> Sample() {
  return ReadApacheLog(SLUICE_SOURCE_DIR "/tests/data/apache_sample.log");
}

std::vector<LoggedRequest> SortedSample() {
  auto log = Sample();
  SortByTime(log);
  return log;
}

TEST(AccessLogSampleTest, AFixedWindowAdmitsWhatTheModelDoesInTheOrderOfTheFile) {
  EXPECT_EQ(CountAllowed(Replay(Sample(), *fixed_window::MakeLimit(20, 1min))), 932);
  EXPECT_EQ(CountAllowed(Replay(Sample(), *fixed_window::MakeLimit(5, 1min))), 686);
}

TEST(AccessLogSampleTest, ATokenBucketAdmitsWhatTheModelDoesSortedByTime) {
  EXPECT_EQ(CountAllowed(Replay(SortedSample(),
                                *token_bucket::MakeLimit({.count = 10, .period = 1min}, 10))),
            924);
  EXPECT_EQ(CountAllowed(
                Replay(SortedSample(), *token_bucket::MakeLimit({.count = 5, .period = 1min}, 5))),
            809);
}

TEST(AccessLogSampleTest, ASlidingLogAdmitsWhatTheModelDoesSortedByTime) {
  EXPECT_EQ(CountAllowed(Replay(SortedSample(), *sliding_window_log::MakeLimit(5, 1min, false))),
            686);
}

TEST(AccessLogSampleTest, ASlidingCounterDecidesAsItsReferenceModel) {
  const auto log = SortedSample();
  const auto decisions = Replay(log, *sliding_window_counter::MakeLimit(5, 1min));
  EXPECT_EQ(decisions, SlidingCounterModel(log, 5, 60));
  EXPECT_EQ(CountAllowed(decisions), 686);
}

}  // namespace
}  // namespace sluice::testing
