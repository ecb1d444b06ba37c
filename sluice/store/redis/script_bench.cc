// Decisions a second of one redis-server, one and 32 requests a call, sixteen calls on their way,
// on 10,000 keys; with the server's CPU time for each decision and a key's bytes, for each
// algorithm. In each, `allowed` is the share of requests that were. Then the same of leases, each
// with the undo of a part of it, one call after another.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sluice/store/redis/key_name.h"
#include "sluice/store/redis/testing/script_server.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kKeys = 10'000;
constexpr std::size_t kCalls = 16;  // on their way

double CpuSeconds(testing::ScriptServer& server) {
  const std::string info(server.Ask({"INFO", "cpu"}).text());
  double seconds = 0;
  for (const std::string_view name : {"used_cpu_sys:", "used_cpu_user:"}) {
    seconds += std::atof(info.c_str() + info.find(name) + name.size());
  }
  return seconds;
}

Limit LimitNamed(std::int64_t which) {
  switch (which) {
    case 0:
      return *token_bucket::MakeLimit({1000, 1s}, 1000);
    case 1:
      return *leaky_bucket::MakeLimit({1000, 1s}, 1000, 10s);
    case 2:
      return *fixed_window::MakeLimit(100'000, 1min);
    case 3:
      return *sliding_window_counter::MakeLimit(100'000, 1min);
    case 4:
      return *sliding_window_strict::MakeLimit(100'000, 1min, 16);
    case 5:
      return *sliding_window_log::MakeLimit(100, 1min, false);
    case 6:
      return *calendar::MakeLimit(100'000, calendar::Period::kDay, "UTC");
    case 7:
      return *concurrency::MakeLimit(10, 30s);
    default:
      return *token_bucket::MakeLimit({1, 24h}, 1);  // denies nearly all
  }
}

std::vector<std::string> Keys() {
  std::vector<std::string> keys(kKeys);
  for (std::size_t i = 0; i < kKeys; ++i) {
    const std::string identity = absl::StrCat("client-", i);
    const auto size = static_cast<std::uint32_t>(identity.size());
    std::string bytes = "3:api";
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(identity);
    (void)AppendKeyName({}, KeyKind::kCounter, bytes, &keys[i]);
  }
  return keys;
}

void Decide(benchmark::State& state) {
  const std::int64_t which = state.range(0);
  const auto groups_a_call = static_cast<std::size_t>(state.range(1));
  testing::ScriptServer server(testing::Clock::kServer);
  const ScriptLimit limit = *ScriptLimit::Make(LimitNamed(which));
  state.SetLabel(which > 7 ? "denied" : std::string(AlgorithmName(limit.limit())));

  const std::vector<std::string> keys = Keys();
  server.own_clock = NowOf(1'781'000'000'000'000);
  {  // Learns the server's time.
    ScriptClaim claim{.key = keys[0], .limit = &limit};
    ScriptGroup group{.claims = {&claim, 1}};
    server.Decide({&group, 1});
  }
  std::vector<ScriptClaim> claims(groups_a_call, ScriptClaim{.limit = &limit});
  std::vector<ScriptGroup> groups;
  for (ScriptClaim& claim : claims) groups.push_back({.claims = {&claim, 1}});
  std::size_t next = 0;
  std::size_t decisions = 0;
  std::size_t allowed = 0;
  const double before = CpuSeconds(server);
  for (auto _ : state) {
    std::string bytes;
    for (std::size_t i = 0; i < kCalls; ++i) {
      for (ScriptClaim& claim : claims) {
        claim.key = keys[next++ * 7919 % kKeys];
        claim.slot = next;
      }
      server.Append(groups, &bytes);
    }
    server.SendAll(bytes);
    for (std::size_t i = 0; i < kCalls; ++i) {
      if (!server.Read(groups).ok()) state.SkipWithError("no answer");
      for (const ScriptGroup& group : groups) allowed += group.allowed ? 1 : 0;
    }
    decisions += kCalls * groups_a_call;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(decisions));
  state.counters["server_us"] =
      (CpuSeconds(server) - before) * 1e6 / static_cast<double>(decisions);
  state.counters["allowed"] = static_cast<double>(allowed) / static_cast<double>(decisions);
  state.counters["key_bytes"] =
      static_cast<double>(server.Ask({"MEMORY", "USAGE", keys[7919 % kKeys]}).integer());
}
BENCHMARK(Decide)
    ->ArgsProduct({benchmark::CreateDenseRange(0, 8, 1), {1, 32}})
    ->ArgNames({"limit", "groups"})
    ->UseRealTime()
    ->MinTime(0.7);

// Eight units for 100 ms, of which four come back at once.
void Lease(benchmark::State& state) {
  const auto groups_a_call = static_cast<std::size_t>(state.range(1));
  testing::ScriptServer server(testing::Clock::kServer);
  const ScriptLimit limit = *ScriptLimit::Make(LimitNamed(state.range(0)));
  state.SetLabel(std::string(AlgorithmName(limit.limit())));
  const std::vector<std::string> keys = Keys();
  server.own_clock = NowOf(1'781'000'000'000'000);
  std::vector<ScriptClaim> claims(groups_a_call,
                                  ScriptClaim{.limit = &limit, .cost = 8, .lease = 100ms});
  std::vector<ScriptGroup> groups;
  for (ScriptClaim& claim : claims) groups.push_back({.claims = {&claim, 1}});
  std::size_t next = 0;
  std::size_t leases = 0;
  std::size_t granted = 0;
  const double before = CpuSeconds(server);
  for (auto _ : state) {
    for (ScriptClaim& claim : claims) claim.key = keys[next++ * 7919 % kKeys];
    server.Decide(groups);
    std::vector<ScriptUndo> undos;
    for (const ScriptClaim& claim : claims) {
      undos.push_back({.key = claim.key, .limit = &limit, .receipt = claim.receipt, .units = 4});
      granted += claim.receipt.units > 0 ? 1 : 0;
    }
    server.Undo(undos);
    leases += groups_a_call;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(leases));
  state.counters["server_us"] = (CpuSeconds(server) - before) * 1e6 / static_cast<double>(leases);
  state.counters["allowed"] = static_cast<double>(granted) / static_cast<double>(leases);
  state.counters["key_bytes"] =
      static_cast<double>(server.Ask({"MEMORY", "USAGE", keys[7919 % kKeys]}).integer());
}
BENCHMARK(Lease)
    ->ArgsProduct({{0, 2, 4, 5, 6}, {1, 32}})
    ->ArgNames({"limit", "groups"})
    ->UseRealTime()
    ->MinTime(0.7);

// What is charged comes back at once, as after a veto in another slot: 0 nothing comes back, 1 it
// does, 2 under a mark that is deleted then.
void ChargeAndUndo(benchmark::State& state) {
  const std::int64_t how = state.range(0);
  const auto groups_a_call = static_cast<std::size_t>(state.range(1));
  testing::ScriptServer server(testing::Clock::kServer);
  net::testing::RawRedis other(server.server().unix_socket());
  const ScriptLimit limit = *ScriptLimit::Make(LimitNamed(0));
  const std::vector<std::string> keys = Keys();
  server.own_clock = NowOf(1'781'000'000'000'000);
  std::vector<ScriptClaim> claims(groups_a_call, ScriptClaim{.limit = &limit});
  std::vector<ScriptGroup> groups;
  for (ScriptClaim& claim : claims) groups.push_back({.claims = {&claim, 1}});
  std::vector<std::string> marks(groups_a_call);
  std::size_t next = 0;
  std::size_t undone = 0;
  const double before = CpuSeconds(server);
  for (auto _ : state) {
    for (ScriptClaim& claim : claims) claim.key = keys[next++ * 7919 % kKeys];
    server.Decide(groups);
    undone += groups_a_call;
    if (how == 0) continue;
    std::vector<ScriptUndo> undos;
    std::vector<std::string_view> words = {"DEL"};
    for (std::size_t i = 0; i < claims.size(); ++i) {
      undos.push_back(
          {.key = claims[i].key, .limit = &limit, .receipt = claims[i].receipt, .units = 1});
      if (how == 1) continue;
      marks[i].clear();
      AppendMarkName(claims[i].key, 1, next + i, &marks[i]);
      undos[i].mark = marks[i];
      undos[i].mark_life = 80s;
      words.push_back(marks[i]);
    }
    server.Undo(undos);
    if (how == 1) continue;
    std::string bytes;
    net::AppendRedisCommand(words, &bytes);
    other.Send(bytes);
    (void)other.Read();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(undone));
  state.counters["server_us"] = (CpuSeconds(server) - before) * 1e6 / static_cast<double>(undone);
}
BENCHMARK(ChargeAndUndo)
    ->ArgsProduct({{0, 1, 2}, {1, 32}})
    ->ArgNames({"undo", "groups"})
    ->UseRealTime()
    ->MinTime(0.7);

}  // namespace
}  // namespace sluice::redis

BENCHMARK_MAIN();
