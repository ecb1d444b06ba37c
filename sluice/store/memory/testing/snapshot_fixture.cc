#include "sluice/store/memory/testing/snapshot_fixture.h"

#include <unistd.h>

#include <array>

namespace sluice {

using std::chrono::minutes;

std::vector<NamedLimit> EveryLimit(std::int64_t units) {
  using fixed_window::Align;
  const auto many = static_cast<std::uint64_t>(units);
  Limit phased = Must(fixed_window::MakeLimit(units, minutes{1}));
  std::get<fixed_window::Limit>(phased).per_key_offset = true;
  Limit phased_counter = Must(sliding_window_counter::MakeLimit(units, minutes{1}));
  std::get<sliding_window_counter::Limit>(phased_counter).per_key_offset = true;
  constexpr std::int64_t kTooLargeForWords = std::int64_t{1} << 40;
  return {
      {"token bucket", Must(token_bucket::MakeLimit({units, minutes{1}}, many))},
      {"token bucket in parts of ns", Must(token_bucket::MakeLimit({7, minutes{1}}, many))},
      {"leaky bucket", Must(leaky_bucket::MakeLimit({units, minutes{1}}, many - 1, minutes{1}))},
      {"fixed window", Must(fixed_window::MakeLimit(units, minutes{1}))},
      {"fixed window, edges by key", phased},
      {"fixed window, large", Must(fixed_window::MakeLimit(kTooLargeForWords, minutes{1}))},
      {"fixed window, first hit",
       Must(fixed_window::MakeLimit(units, minutes{1}, Align::kFirstHit))},
      {"sliding counter", Must(sliding_window_counter::MakeLimit(units, minutes{1}))},
      {"sliding counter, edges by key", phased_counter},
      {"sliding counter, large",
       Must(sliding_window_counter::MakeLimit(kTooLargeForWords, minutes{1}))},
      {"calendar", Must(calendar::MakeLimit(units, calendar::Period::kDay, "Europe/Berlin"))},
      {"strict", Must(sliding_window_strict::MakeLimit(units, minutes{1}, 60))},
      {"strict, large", Must(sliding_window_strict::MakeLimit(kTooLargeForWords, minutes{1}, 60))},
      {"log", Must(sliding_window_log::MakeLimit(units, minutes{1}, false))},
      {"log with costs", Must(sliding_window_log::MakeLimit(units, minutes{1}, true))},
  };
}

Claim Ask(MemoryStore& store, std::string_view key, const Limit& limit, std::uint64_t cost, Now now,
          ClaimKind kind) {
  const absl::StatusOr<LimitId> id = store.Register(limit);
  EXPECT_TRUE(id.ok()) << id.status();
  Claim claim;
  claim.key = store.hash_key()(key);
  claim.limit = &limit;
  claim.limit_id = id.value_or(0);
  claim.kind = kind;
  claim.cost = cost;
  ClaimGroup group{.claims = {&claim, 1}};
  store.Apply({&group, 1}, now);
  store.Release(claim.limit_id, now);
  return claim;
}

HashKey KeyOfTests() {
  std::array<std::uint8_t, 32> secret{};
  secret.fill('k');
  return {HashKind::kSipHash13, secret};
}

SnapshotTest::SnapshotTest() {
  std::string name = testing::TempDir() + "/snapshot_test.XXXXXX";
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  folder_ = name;
}

SnapshotTest::~SnapshotTest() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<std::unique_ptr<MemoryStore>> SnapshotTest::TryOpen(
    Now now, std::uint64_t max_keys, std::uint64_t outside_bytes) const {
  MemoryStoreOptions options;
  options.max_keys = max_keys;
  options.outside_bytes = outside_bytes;
  options.snapshot = path();
  options.hash_key = KeyOfTests();
  return MemoryStore::Open(options, now);
}

std::unique_ptr<MemoryStore> SnapshotTest::Open(Now now, std::uint64_t max_keys,
                                                std::uint64_t outside_bytes) const {
  absl::StatusOr<std::unique_ptr<MemoryStore>> store = TryOpen(now, max_keys, outside_bytes);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

void SnapshotTest::Write(MemoryStore& store, Now now, Duration min_lifetime) const {
  const absl::Status status = store.WriteSnapshot(path(), now, min_lifetime);
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace sluice
