// The hot path allocates nothing: a counting operator new stands behind this whole program.
#include <gtest/gtest.h>

#include "sluice/limiter/limiter_fixture.h"
#include "tests/allocations/counting_new.h"

namespace sluice {
namespace {

class HotPathTest : public LimiterFixture {};

TEST_F(HotPathTest, AllocatesNothingOnceItsBuffersHaveGrown) {
  Rule ip =
      MakeRule("ip", {.kind = SourceKind::kIp, .name = "", .label = "ip"}, Bucket(1000, 1s, 50));
  Rule query = MakeRule("query", {.kind = SourceKind::kQuery, .name = "key", .label = "query.key"},
                        Window(2'000, 1min));
  query.match.paths = {*PathPattern::Compile("/v1/**")};
  Rule log = MakeRule("log", HeaderSource("K"), *sliding_window_log::MakeLimit(30, 1min, false));
  Rule strict = MakeRule("strict", HeaderSource("K"), *sliding_window_strict::MakeLimit(35, 1min));
  Rule counter =
      MakeRule("counter", HeaderSource("K"), *sliding_window_counter::MakeLimit(35, 1min));
  Rule quota = MakeRule("quota", HeaderSource("K"),
                        *calendar::MakeLimit(10'000, calendar::Period::kMonth, "Europe/Berlin"));
  Rule slots = MakeRule("slots", HeaderSource("K"), Slots(3, 30s));
  log.block_for = 150ms;
  counter.mode = RuleMode::kShadow;
  counter.block_for = 1s;
  Use({ip, query, log, strict, counter, quota, slots});

  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back("key-of-a-client-" + std::to_string(i));
  const auto round = [&] {
    int denied = 0;
    for (const std::string& key : keys) {
      const Field headers[] = {{"Host", "api.example.com"}, {"K", key}};
      // The path has to be normalised and the parameter decoded, so that those buffers are in play.
      limiter_->Check({.method = "GET",
                       .target = "/v1//orders?key=a%62c&x=1",
                       .host = "API.example.com",
                       .peer = IpAddress::V4(0x0a000001),
                       .headers = headers},
                      outcome_);
      denied += outcome_.allowed() ? 0 : 1;
      limiter_->Finish(outcome_);
    }
    clock_.Advance(100ms);
    return denied;
  };
  round();
  CountAllocationsOfThisThread();
  const std::uint64_t before = CountedAllocations();
  int denied = 0;
  for (int i = 0; i < 50; ++i) denied += round();
  EXPECT_EQ(CountedAllocations(), before);
  EXPECT_GT(denied, 0);
  EXPECT_LT(denied, 5000);
}

}  // namespace
}  // namespace sluice
