// What a Redis server is like, as far as it matters to whoever keeps counters in it: what is told
// of it in one line, and what its operator should know.
//
//   facts     redis 7.0.15, primary with 1 replica, maxmemory 0 (noeviction), AOF, snapshots, ...
//   warnings  maxmemory-policy allkeys-lru may evict counters: ...
//
// Pure. What the server says is looked at with care: a value that is none is told as unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/time.h"

namespace sluice::redis {

// Of INFO and CONFIG. Empty or without a value: not told.
struct ServerFacts {
  std::string software = "redis";  // or "valkey"
  std::string version;             // "7.0.15"
  std::string mode;                // "standalone", "cluster", "sentinel"
  bool as_one_of_several = false;  // it is asked as one of its cluster
  std::string role;                // "master", "slave"
  std::optional<std::uint64_t> replicas;
  std::optional<std::uint64_t> max_memory;    // bytes; 0: no bound
  std::string eviction;                       // maxmemory_policy
  std::optional<bool> appends;                // to a file, each write
  std::optional<bool> snapshots;              // now and then
  bool saves_fail = false;                    // the last of either did
  std::optional<std::uint64_t> min_replicas;  // min-replicas-to-write
  std::optional<Duration> clock_ahead;        // of ours
  // What was refused: "CONFIG: NOPERM ...".
  std::vector<std::string> refused;
};

struct ServerReport {
  std::string server;  // its address
  std::string facts;
  std::vector<std::string> warnings;
};

// Takes what is known from INFO's lines; all else stays. Any bytes.
void ReadInfo(std::string_view info, ServerFacts* facts);
// From the values of CONFIG GET.
void ReadConfig(std::string_view name, std::string_view value, ServerFacts* facts);

[[nodiscard]] ServerReport ReportOf(const ServerFacts& facts);

}  // namespace sluice::redis
