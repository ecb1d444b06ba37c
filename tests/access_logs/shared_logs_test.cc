// The whole of two public access logs, which stand outside the project: SLUICE_SHARED names the
// folder. The expected counts come from independent models.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/access_logs/log_replay.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

std::string Path(const std::string& name) {
  const char* shared = std::getenv("SLUICE_SHARED");
  return std::string(shared == nullptr ? "../shared" : shared) + "/data/" + name;
}

std::vector<LoggedRequest> Nasa() { return ReadTabSeparatedLog(Path("nasa_http_19950701.tsv")); }
std::vector<LoggedRequest> Apache() { return ReadApacheLog(Path("apache_semicomplete_2015.log")); }

TEST(NasaLogTest, AFixedWindowOfFiveAMinuteAdmitsWhatTheModelDoes) {
  EXPECT_EQ(CountAllowed(Replay(Nasa(), *fixed_window::MakeLimit(5, 1min))), 9249);
}

TEST(NasaLogTest, ASlidingLogOfFiveAMinuteAdmitsWhatTheModelDoes) {
  EXPECT_EQ(CountAllowed(Replay(Nasa(), *sliding_window_log::MakeLimit(5, 1min, false))), 8692);
}

TEST(NasaLogTest, ATokenBucketOfFiveAMinuteAdmitsWhatTheModelDoes) {
  EXPECT_EQ(CountAllowed(Replay(Nasa(), *token_bucket::MakeLimit({.count = 5, .period = 1min}, 5))),
            9639);
}

TEST(NasaLogTest, ASlidingCounterDecidesAsItsReferenceModel) {
  const auto log = Nasa();
  EXPECT_EQ(Replay(log, *sliding_window_counter::MakeLimit(5, 1min)),
            SlidingCounterModel(log, 5, 60));
}

TEST(ApacheLogTest, AFixedWindowOfTwentyAMinuteAdmitsWhatTheModelDoesInTheOrderOfTheFile) {
  EXPECT_EQ(CountAllowed(Replay(Apache(), *fixed_window::MakeLimit(20, 1min))), 9069);
}

TEST(ApacheLogTest, ATokenBucketOfTenAMinuteAdmitsWhatTheModelDoesSortedByTime) {
  auto log = Apache();
  SortByTime(log);
  EXPECT_EQ(CountAllowed(Replay(log, *token_bucket::MakeLimit({.count = 10, .period = 1min}, 10))),
            8987);
}

}  // namespace
}  // namespace sluice::testing
