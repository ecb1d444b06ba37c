// Writing a call and reading its answer allocate nothing, once the buffers have grown.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "sluice/net/testing/redis_server.h"
#include "sluice/store/redis/key_name.h"
#include "sluice/store/redis/script_call.h"
#include "tests/allocations/counting_new.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;

std::vector<ScriptLimit> EveryLimit() {
  auto shifted = *fixed_window::MakeLimit(10, 24h);
  shifted.per_key_offset = true;
  const std::vector<Limit> limits = {
      *token_bucket::MakeLimit({7919, 1s}, 1000),
      *leaky_bucket::MakeLimit({1000, 1s}, 1000, 10s),
      *fixed_window::MakeLimit(10, 24h, fixed_window::Align::kFirstHit),
      shifted,
      *sliding_window_counter::MakeLimit(10, 24h),
      *sliding_window_strict::MakeLimit(10, 24h, 16),
      *sliding_window_log::MakeLimit(10, 24h, true),
      *sliding_window_log::MakeLimit(10, 24h, false),
      *calendar::MakeLimit(10, calendar::Period::kDay, "Europe/Berlin"),
      *concurrency::MakeLimit(10, 30s)};
  std::vector<ScriptLimit> made;
  for (const Limit& limit : limits) made.push_back(*ScriptLimit::Make(limit));
  return made;
}

TEST(ScriptAllocationTest, NothingIsAllocatedForACallAndItsAnswer) {
  net::testing::RedisServer server;
  net::testing::RawRedis connection(server.unix_socket());
  const std::string sha(connection.Ask({"SCRIPT", "LOAD", ScriptSource()}).text());
  const std::string seconds(connection.Ask({"TIME"})[0].text());
  const Now now = NowOf(std::stoll(seconds) * 1'000'000);

  const std::vector<ScriptLimit> limits = EveryLimit();
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < limits.size(); ++i) keys.push_back(std::to_string(i));
  std::vector<ScriptClaim> claims;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    claims.push_back({.key = keys[i], .limit = &limits[i], .phase_bits = 77'777'777, .slot = i});
  }
  std::vector<ScriptGroup> groups;
  for (ScriptClaim& claim : claims) groups.push_back({.claims = {&claim, 1}});
  groups.push_back({.claims = claims});  // and all of them in one request

  ScriptCall call;
  std::string bytes;
  call.AppendDecide(sha, groups, now, &bytes);
  connection.Send(bytes);
  const net::RedisReply reply = connection.Read();
  const std::string key("3:api\x03\0\0\0ann", 12);
  std::string name;
  const auto once = [&] {
    bytes.clear();
    call.AppendDecide(sha, groups, now, &bytes);
    if (!call.ReadDecide(reply, groups, now).ok()) return false;
    name.clear();
    (void)AppendKeyName({}, KeyKind::kCounter, key, &name);
    return groups.back().state == ScriptGroup::State::kDone && groups[0].allowed;
  };
  ASSERT_TRUE(once()) << groups.back().status;

  CountAllocationsOfThisThread();
  const std::uint64_t before = CountedAllocations();
  bool all = true;
  for (int i = 0; i < 100; ++i) all = once() && all;
  EXPECT_EQ(CountedAllocations() - before, 0U);
  EXPECT_TRUE(all);
}

}  // namespace
}  // namespace sluice::redis
