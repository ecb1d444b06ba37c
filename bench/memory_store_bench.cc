// The memory store beside hash maps of strings, as a server without it would have them.
//
//   memory_store_bench [--keys N]...     default: 1,000,000 and then 10,000,000
//
// Every operation writes a key's 45 bytes, for a client drawn uniformly, hashes it, finds its state
// and decides. All keys are there before. Contestants take turns; medians (harness/paired.h). Then
// what memory costs: bytes a key, the longest pause while keys are added, keys forgotten at 60 %
// load, and a flood of new keys.

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "bench/harness/keys.h"
#include "bench/harness/paired.h"
#include "sluice/algorithm/token_bucket.h"
#include "sluice/store/memory/memory_store.h"

namespace sluice::bench {
namespace {

using std::chrono::hours;

// Time goes on a little with each operation, as a server's clock does from batch to batch.
class StepClock {
 public:
  Now Next(std::uint64_t operations) {
    ns_ += static_cast<std::int64_t>(operations) * 100;
    return {Time{Duration{ns_}}, WallTime{Duration{ns_} + hours{24 * 365 * 50}}};
  }

 private:
  std::int64_t ns_ = Duration{hours{1}}.count();
};

// A unit is owed for six minutes, longer than this runs: a key that is met stays in the table.
token_bucket::Limit BucketLimit() { return token_bucket::MakeLimit({10, hours{1}}, 1'000).value(); }

class MapSide {
 public:
  virtual ~MapSide() = default;
  virtual void Decide(std::string_view key, Now now) = 0;
  virtual void Fill(std::uint64_t keys) = 0;
};

template <typename Map, bool kLocked>
class StringMap final : public MapSide {
 public:
  void Fill(std::uint64_t keys) override {
    KeyText text;
    for (std::uint64_t i = 0; i < keys; ++i) Decide(text.Of(i), clock_.Next(1));
  }
  void Decide(std::string_view key, Now now) override {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (kLocked) lock.lock();
    token_bucket::State& state = map_[std::string(key)];
    state = token_bucket::Decide(limit_, state, 1, now.steady).next;
  }

 private:
  token_bucket::Limit limit_ = BucketLimit();
  StepClock clock_;
  std::mutex mutex_;
  Map map_;
};

using FlatMap = StringMap<absl::flat_hash_map<std::string, token_bucket::State>, false>;
using StdMap = StringMap<std::unordered_map<std::string, token_bucket::State>, true>;

// The store, and the claims of a batch that stand ready.
class StoreSide {
 public:
  StoreSide(MemoryStore& store, const Limit& limit) : store_(store), limit_(limit) {
    id_ = store.Register(limit_).value();
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      claims_[i].limit = &limit_;
      claims_[i].limit_id = id_;
      groups_[i].claims = {&claims_[i], 1};
    }
  }

  // `batch` keys at a time, each given by `next`.
  template <typename NextKey>
  void Run(std::uint64_t operations, std::size_t batch, NextKey next) {
    const HashKey& hash = store_.hash_key();
    for (std::uint64_t done = 0; done < operations; done += batch) {
      // All are written before the first is hashed, as they would be in a buffer of requests.
      for (std::size_t i = 0; i < batch; ++i) keys_[i] = texts_[i].Of(next());
      for (std::size_t i = 0; i < batch; ++i) {
        claims_[i].key = hash(keys_[i]);
        if (batch == 1) store_.Prefetch(claims_[i].key);
      }
      store_.Apply({groups_.data(), batch}, clock_.Next(batch));
      allowed_ += groups_[0].allowed ? 1 : 0;
    }
  }

  void Fill(std::uint64_t keys) {
    std::uint64_t next = 0;
    Run(keys, Store::kMaxBatch, [&] { return next++; });
  }

 private:
  MemoryStore& store_;
  const Limit limit_;
  LimitId id_ = 0;
  std::array<KeyText, Store::kMaxBatch> texts_;
  std::array<std::string_view, Store::kMaxBatch> keys_;
  StepClock clock_;
  std::array<Claim, Store::kMaxBatch> claims_;
  std::array<ClaimGroup, Store::kMaxBatch> groups_;
  std::uint64_t allowed_ = 0;
};

std::unique_ptr<MemoryStore> OpenStore(std::uint64_t keys, std::uint64_t outside_bytes = 0) {
  MemoryStoreOptions options;
  options.max_keys = keys;
  options.outside_bytes = outside_bytes;
  absl::StatusOr<std::unique_ptr<MemoryStore>> store = MemoryStore::Open(options, {});
  if (!store.ok()) {
    std::fprintf(stderr, "%s\n", std::string(store.status().message()).c_str());
    std::exit(1);
  }
  return *std::move(store);
}

// On two threads, each with half of the operations.
void OnTwo(std::uint64_t operations, const std::function<void(std::uint64_t, int)>& run) {
  std::thread other([&] { run(operations / 2, 1); });
  run(operations / 2, 0);
  other.join();
}

void BenchThroughput(std::uint64_t keys) {
  constexpr std::uint64_t kOperations = 1'000'000;
  FlatMap flat;
  StdMap std_map;
  const std::unique_ptr<MemoryStore> store = OpenStore(keys);
  StoreSide one(*store, BucketLimit());
  StoreSide two(*store, BucketLimit());
  flat.Fill(keys);
  std_map.Fill(keys);
  one.Fill(keys);

  std::array<Random, 2> random{Random(1), Random(2)};
  const auto run_map = [&](MapSide& map, std::uint64_t n, std::size_t thread) {
    KeyText text;
    StepClock clock;
    Random mine = random[thread];
    for (std::uint64_t i = 0; i < n; ++i) map.Decide(text.Of(mine.Below(keys)), clock.Next(1));
    random[thread] = mine;
  };
  const auto run_store = [&](StoreSide& side, std::uint64_t n, std::size_t batch,
                             std::size_t thread) {
    Random mine = random[thread];
    side.Run(n, batch, [&] { return mine.Below(keys); });
    random[thread] = mine;
  };

  std::printf("\nP1  token bucket, %llu keys, one thread\n", static_cast<unsigned long long>(keys));
  Paired alone({.rounds = 9});
  alone.Add("absl::flat_hash_map<std::string, State>", kOperations,
            [&](std::uint64_t n) { run_map(flat, n, 0); });
  alone.Add("std::unordered_map<std::string, State>, mutex", kOperations,
            [&](std::uint64_t n) { run_map(std_map, n, 0); });
  alone.Add("store, one by one", kOperations, [&](std::uint64_t n) { run_store(one, n, 1, 0); });
  alone.Add("store, in batches of 8", kOperations,
            [&](std::uint64_t n) { run_store(one, n, 8, 0); });
  alone.Add("store, in batches of 32", kOperations,
            [&](std::uint64_t n) { run_store(one, n, 32, 0); });
  alone.Run();
  alone.Print("absl::flat_hash_map<std::string, State>");

  std::printf("\nP1  token bucket, %llu keys, two threads (ns of one operation of both together)\n",
              static_cast<unsigned long long>(keys));
  Paired both({.rounds = 9});
  both.Add("std::unordered_map<std::string, State>, mutex", kOperations, [&](std::uint64_t n) {
    OnTwo(n, [&](std::uint64_t half, int t) { run_map(std_map, half, t == 0 ? 0 : 1); });
  });
  both.Add("store, one by one", kOperations, [&](std::uint64_t n) {
    OnTwo(n, [&](std::uint64_t half, int t) {
      run_store(t == 0 ? one : two, half, 1, t == 0 ? 0 : 1);
    });
  });
  both.Add("store, in batches of 32", kOperations, [&](std::uint64_t n) {
    OnTwo(n, [&](std::uint64_t half, int t) {
      run_store(t == 0 ? one : two, half, 32, t == 0 ? 0 : 1);
    });
  });
  both.Run();
  both.Print("std::unordered_map<std::string, State>, mutex");
}

// Each algorithm on a table of its own, so that all are equally far from memory.
void BenchAlgorithms(std::uint64_t keys) {
  constexpr std::uint64_t kOperations = 500'000;
  const struct {
    const char* name;
    Limit limit;
    std::uint64_t outside_per_key;
  } rows[] = {
      {"token bucket", BucketLimit(), 0},
      {"leaky bucket", leaky_bucket::MakeLimit({10, hours{1}}, 1'000, hours{200}).value(), 0},
      {"fixed window", fixed_window::MakeLimit(10'000, hours{1}).value(), 0},
      {"sliding window counter", sliding_window_counter::MakeLimit(100, hours{1}).value(), 0},
      {"calendar quota",
       calendar::MakeLimit(10'000, calendar::Period::kMonth, "Europe/Berlin").value(), 160},
      {"strict counter of 16", sliding_window_strict::MakeLimit(10'000, hours{1}).value(), 160},
      {"sliding window log", sliding_window_log::MakeLimit(10, hours{1}, false).value(), 300},
  };
  std::vector<std::unique_ptr<MemoryStore>> stores;
  std::vector<std::unique_ptr<StoreSide>> sides;
  Random random(3);
  Paired paired({.rounds = 9});
  for (const auto& row : rows) {
    stores.push_back(OpenStore(keys, keys * row.outside_per_key));
    sides.push_back(std::make_unique<StoreSide>(*stores.back(), row.limit));
    StoreSide& side = *sides.back();
    side.Fill(keys);
    paired.Add(row.name, kOperations, [&side, &random, keys](std::uint64_t n) {
      side.Run(n, Store::kMaxBatch, [&] { return random.Below(keys); });
    });
  }
  std::printf("\nP1  each algorithm, %llu keys, one thread, in batches of 32\n",
              static_cast<unsigned long long>(keys));
  paired.Run();
  paired.Print("token bucket");
}

std::uint64_t ResidentBytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  unsigned long long pages = 0;
  if (file == nullptr || std::fscanf(file, "%*s %llu", &pages) != 1) std::abort();
  std::fclose(file);
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::int64_t TimesPutToSleep() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

// How long each insert of a new key took, one by one, in nanoseconds. Blocks of inserts in which
// the kernel let somebody else run are left out: that is the machine's pause, not the store's.
template <typename Insert>
std::vector<std::uint32_t> TimeInserts(std::uint64_t keys, std::uint64_t& left_out, Insert insert) {
  constexpr std::uint64_t kBlock = 256;
  std::vector<std::uint32_t> took;
  took.reserve(keys);
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < keys; i += kBlock) {
    const std::int64_t slept = TimesPutToSleep();
    const std::size_t begin = took.size();
    auto last = std::chrono::steady_clock::now();
    for (std::uint64_t k = 0; k < kBlock && next < keys; ++k) {
      insert(next++);
      const auto now = std::chrono::steady_clock::now();
      took.push_back(static_cast<std::uint32_t>((now - last).count()));
      last = now;
    }
    if (TimesPutToSleep() == slept) continue;
    left_out += took.size() - begin;
    took.resize(begin);
  }
  std::sort(took.begin(), took.end());
  return took;
}

void BenchMemory(std::uint64_t keys) {
  const std::uint64_t before = ResidentBytes();
  const auto opening = std::chrono::steady_clock::now();
  const std::unique_ptr<MemoryStore> store = OpenStore(keys);
  const std::chrono::duration<double> opened = std::chrono::steady_clock::now() - opening;
  const std::uint64_t resident = ResidentBytes() - before;
  StoreSide side(*store, BucketLimit());
  std::uint64_t left_out = 0;
  const std::vector<std::uint32_t> took =
      TimeInserts(keys, left_out, [&](std::uint64_t key) { side.Run(1, 1, [&] { return key; }); });
  // The same without the store: what the machine itself does to a loop like this.
  KeyText text;
  volatile std::uint64_t kept = 0;
  std::uint64_t ignored = 0;
  const std::vector<std::uint32_t> floor = TimeInserts(
      keys, ignored, [&](std::uint64_t key) { kept = store->hash_key()(text.Of(key)).lo; });
  const auto at = [&](double share) {
    return took[static_cast<std::size_t>(share * static_cast<double>(took.size() - 1))];
  };
  const MemoryStats stats = store->Stats({Time{hours{1}}, {}});
  std::printf(
      "\nP2  %llu keys added one by one\n"
      "    bytes a key              %8.3f taken, %.3f resident (prefaulted in %.2f s)\n"
      "    ns an insert             %8u p50, %u p99, %u p99.9, %u p99.999, %u longest\n"
      "    left out: others ran     %8.1f %%\n"
      "    longest without a store  %8u\n"
      "    keys forgotten           %8llu of %llu (table at %.0f %% load)\n",
      static_cast<unsigned long long>(keys),
      static_cast<double>(stats.bytes) / static_cast<double>(keys),
      static_cast<double>(resident) / static_cast<double>(keys), opened.count(), at(0.5), at(0.99),
      at(0.999), at(0.99999), took.back(),
      100.0 * static_cast<double>(left_out) / static_cast<double>(keys), floor.back(),
      static_cast<unsigned long long>(stats.evicted),
      static_cast<unsigned long long>(stats.inserted),
      100.0 * static_cast<double>(stats.table_slots_occupied) /
          static_cast<double>(stats.table_slots));
}

// 60 % of all slots, 20 % more keys than the table is meant for; then new keys without end.
void BenchFlood(std::uint64_t keys) {
  const std::unique_ptr<MemoryStore> store = OpenStore(keys);
  StoreSide side(*store, BucketLimit());
  const MemoryStats empty = store->Stats({Time{hours{1}}, {}});
  std::uint64_t next = 0;
  const auto new_key = [&] { return next++; };
  side.Run(empty.table_slots * 6 / 10, Store::kMaxBatch, new_key);
  const MemoryStats full = store->Stats({Time{hours{1}}, {}});
  std::printf("    keys forgotten at 60 %%   %8.4f %% of the inserts (target 0.05)\n",
              100.0 * static_cast<double>(full.evicted) / static_cast<double>(full.inserted));

  side.Run(empty.table_slots, Store::kMaxBatch, new_key);  // until every insert pushes one out
  const auto start = std::chrono::steady_clock::now();
  constexpr std::uint64_t kFlood = 2'000'000;
  side.Run(kFlood, Store::kMaxBatch, new_key);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  const MemoryStats after = store->Stats({Time{hours{1}}, {}});
  std::printf("    flood of new keys        %8.1f ns each; bytes %s\n",
              took.count() / static_cast<double>(kFlood),
              after.bytes == full.bytes ? "as before" : "GROWN");
}

void BenchLogs() {
  for (const bool weighted : {false, true}) {
    for (const std::int64_t events : {20, 100, 1'000, 10'000}) {
      const std::int64_t keys = 1'000'000 / events;
      const std::unique_ptr<MemoryStore> store = OpenStore(
          static_cast<std::uint64_t>(keys), static_cast<std::uint64_t>(events * keys) * 24);
      StoreSide side(*store, sliding_window_log::MakeLimit(events, hours{1}, weighted).value());
      std::uint64_t next = 0;
      side.Run(static_cast<std::uint64_t>(events * keys), Store::kMaxBatch,
               [&] { return next++ % static_cast<std::uint64_t>(keys); });
      const MemoryStats stats = store->Stats({Time{hours{1}}, {}});
      std::printf("    log of %5lld events%s %8.2f bytes an event\n",
                  static_cast<long long>(events), weighted ? ", costs " : "        ",
                  static_cast<double>(stats.outside_blocks_used) * 128 /
                      static_cast<double>(events * keys));
    }
  }
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  std::vector<std::uint64_t> sizes;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--keys") == 0)
      sizes.push_back(std::strtoull(argv[i + 1], nullptr, 10));
  }
  if (sizes.empty()) sizes = {1'000'000, 10'000'000};
  for (const std::uint64_t keys : sizes) sluice::bench::BenchThroughput(keys);
  sluice::bench::BenchAlgorithms(sizes.front());
  sluice::bench::BenchMemory(sizes.back());
  sluice::bench::BenchFlood(sizes.back());
  sluice::bench::BenchLogs();
}
