#include "sluice/store/redis/server_report.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLongestWord = 32;
constexpr Duration kClocksApart = 1s;

// Printable and short, or nothing: it goes into a log.
std::string Word(std::string_view value) {
  const bool plain = std::ranges::all_of(value, [](char c) { return c > ' ' && c <= '~'; });
  return plain && value.size() <= kLongestWord ? std::string(value) : std::string();
}

std::optional<std::uint64_t> Number(std::string_view value) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size()) return std::nullopt;
  return number;
}

// The major number of "7.0.15".
std::optional<std::uint64_t> MajorOf(std::string_view version) {
  return Number(version.substr(0, version.find('.')));
}

void TakeField(std::string_view name, std::string_view value, ServerFacts& facts) {
  if (name == "redis_version" && facts.software == "redis") facts.version = Word(value);
  if (name == "valkey_version") {
    facts.software = "valkey";
    facts.version = Word(value);
  }
  if (name == "redis_mode" || name == "server_mode") facts.mode = Word(value);
  if (name == "role") facts.role = Word(value);
  if (name == "connected_slaves") facts.replicas = Number(value);
  if (name == "maxmemory") facts.max_memory = Number(value);
  if (name == "maxmemory_policy") facts.eviction = Word(value);
  if (name == "aof_enabled") facts.appends = value == "1";
  if (name == "rdb_last_bgsave_status" || name == "aof_last_write_status") {
    facts.saves_fail = facts.saves_fail || value == "err";
  }
}

std::string Known(std::string_view word) { return word.empty() ? "unknown" : std::string(word); }

template <class T>
std::string Known(const std::optional<T>& number) {
  return number ? std::to_string(*number) : "unknown";
}

std::string YesNo(std::optional<bool> yes) {
  if (!yes) return "unknown";
  return *yes ? "on" : "off";
}

std::string RoleInWords(const ServerFacts& facts) {
  if (facts.role == "slave") return "replica";
  if (facts.role != "master") return "role unknown";
  return absl::StrCat("primary with ", Known(facts.replicas), " replicas");
}

// Coarse, so that the same server is told of once (RedisStores::Tell).
std::string ClockInWords(Duration ahead) {
  const auto tens = std::chrono::abs(ahead) / 10ms;
  if (tens == 0) return "clock as ours";
  return absl::StrCat("clock ", 10 * tens, " ms ", ahead > 0ns ? "ahead of" : "behind", " ours");
}

void Warn(const ServerFacts& facts, std::vector<std::string>& warnings) {
  const std::optional<std::uint64_t> major = MajorOf(facts.version);
  if (facts.software == "redis" && major && *major < 5) {
    warnings.push_back(absl::StrCat("version ", facts.version,
                                    " is older than 5: its scripts may not write after they have "
                                    "read the time"));
  }
  if (facts.role == "slave") {
    warnings.emplace_back("this is a replica: it takes no writes, so nothing can be charged");
  }
  if (facts.mode == "cluster" && !facts.as_one_of_several) {
    warnings.emplace_back(
        "this is one server of a cluster, and only its own keys can be reached: write "
        "`cluster: [HOST:PORT, ...]` in place of `url`");
  }
  if (facts.mode == "sentinel") {
    warnings.emplace_back(
        "this is a sentinel, which keeps no keys: write `sentinel` in place of "
        "`url`");
  }
  if (facts.max_memory.value_or(0) > 0 && facts.eviction != "noeviction") {
    warnings.push_back(absl::StrCat(
        "maxmemory-policy ", Known(facts.eviction), " may evict counters",
        facts.eviction == "volatile-ttl" ? ", those first that end soonest" : "",
        ": when memory is full, more is admitted than the limits say; noeviction does not"));
  }
  if (facts.saves_fail) {
    warnings.emplace_back("the server could not save its data the last time: it may refuse writes");
  }
  if (facts.appends == false && facts.snapshots == false) {
    warnings.emplace_back("no persistence: a restart forgets all that was counted");
  }
  if (facts.role == "master" && facts.replicas.value_or(0) > 0 && facts.min_replicas == 0) {
    warnings.emplace_back(
        "min-replicas-to-write is 0: a primary that was cut off goes on counting, and what it "
        "counted is admitted again after a failover");
  }
  if (facts.clock_ahead && std::chrono::abs(*facts.clock_ahead) > kClocksApart) {
    warnings.push_back(absl::StrCat(
        "the server's clock is ", std::chrono::abs(*facts.clock_ahead) / 1ms, " ms ",
        *facts.clock_ahead > 0ns ? "ahead of" : "behind", " ours: windows begin and end by it"));
  }
  for (const std::string& refused : facts.refused) {
    warnings.push_back(absl::StrCat("not all is known of the server: ", refused));
  }
}

}  // namespace

void ReadInfo(std::string_view info, ServerFacts* facts) {
  while (!info.empty()) {
    const std::size_t end = std::min(info.find('\n'), info.size());
    std::string_view line = info.substr(0, end);
    info.remove_prefix(std::min(end + 1, info.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    TakeField(line.substr(0, colon), line.substr(colon + 1), *facts);
  }
}

void ReadConfig(std::string_view name, std::string_view value, ServerFacts* facts) {
  if (name == "min-replicas-to-write") facts->min_replicas = Number(value);
  if (name == "save") facts->snapshots = !value.empty();
}

ServerReport ReportOf(const ServerFacts& facts) {
  ServerReport report;
  report.facts =
      absl::StrCat(facts.software, " ", Known(facts.version), ", ", Known(facts.mode), ", ",
                   RoleInWords(facts), ", maxmemory ", Known(facts.max_memory), " (",
                   Known(facts.eviction), "), appends ", YesNo(facts.appends), ", snapshots ",
                   YesNo(facts.snapshots), ", min-replicas-to-write ", Known(facts.min_replicas));
  if (facts.clock_ahead) {
    absl::StrAppend(&report.facts, ", ", ClockInWords(*facts.clock_ahead));
  }
  Warn(facts, report.warnings);
  return report;
}

}  // namespace sluice::redis
