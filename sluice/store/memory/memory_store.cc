#include "sluice/store/memory/memory_store.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/store/memory/internal/engine.h"
#include "sluice/store/memory/internal/snapshot.h"

namespace sluice {
namespace {

constexpr std::uint64_t kMaxKeys = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxOutsideBytes = std::uint64_t{1} << 38;
constexpr std::uint32_t kMaxSlots = std::uint32_t{1} << 26;

absl::Status CheckOptions(const MemoryStoreOptions& options) {
  if (options.max_keys < 1 || options.max_keys > kMaxKeys) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_keys must be from 1 to ", kMaxKeys, ", got ", options.max_keys));
  }
  if (options.outside_bytes > kMaxOutsideBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "outside_bytes must be at most ", kMaxOutsideBytes, ", got ", options.outside_bytes));
  }
  if (options.max_slots > kMaxSlots) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_slots must be at most ", kMaxSlots, ", got ", options.max_slots));
  }
  return absl::OkStatus();
}

// A snapshot that is open, at the first of its states.
struct OpenSnapshot {
  memory::SnapshotInput input;
  memory::SnapshotHeader header;
};

absl::StatusOr<std::optional<OpenSnapshot>> OpenIfThere(const MemoryStoreOptions& options) {
  if (options.snapshot.empty()) return std::nullopt;
  absl::StatusOr<std::optional<memory::SnapshotInput>> input =
      memory::SnapshotInput::Open(options.snapshot);
  if (!input.ok()) return input.status();
  if (!*input) return std::nullopt;
  const absl::StatusOr<memory::SnapshotHeader> header = memory::ReadSnapshotHeader(**input);
  if (!header.ok()) return header.status();
  const HashKey& key = header->hash_key;
  if (options.hash_key &&
      (options.hash_key->kind() != key.kind() || options.hash_key->secret() != key.secret())) {
    return absl::InvalidArgumentError((*input)->Told("is of another hash_key"));
  }
  return OpenSnapshot{**std::move(input), *header};
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryStore>> MemoryStore::Open(const MemoryStoreOptions& options,
                                                               Now now) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  absl::StatusOr<std::optional<OpenSnapshot>> snapshot = OpenIfThere(options);
  if (!snapshot.ok()) return snapshot.status();
  const HashKey key = *snapshot          ? (*snapshot)->header.hash_key
                      : options.hash_key ? *options.hash_key
                                         : HashKey::Random();
  absl::StatusOr<memory::LineTable> table = memory::LineTable::Open(
      options.max_keys, *snapshot ? (*snapshot)->header.shape : memory::TableShape{});
  if (!table.ok()) return table.status();
  auto engine = std::make_unique<Engine>(options, key, *std::move(table));
  if (*snapshot) {
    absl::Status status = memory::ReadSnapshot((*snapshot)->input, (*snapshot)->header,
                                               engine->SnapshotParts(), engine->max_keys, now);
    if (!status.ok()) return status;
  }
  return std::unique_ptr<MemoryStore>(new MemoryStore(std::move(engine)));
}

absl::Status MemoryStore::WriteSnapshot(const std::string& path, Now now, Duration min_lifetime) {
  const memory::SnapshotHeader header{.hash_key = engine_->hash_key,
                                      .written_at = now.wall,
                                      .max_keys = engine_->max_keys,
                                      .shape = engine_->table.shape()};
  return memory::WriteSnapshot(engine_->SnapshotParts(), header, path, now, min_lifetime);
}

MemoryStore::MemoryStore(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
MemoryStore::~MemoryStore() = default;

const HashKey& MemoryStore::hash_key() const { return engine_->hash_key; }

absl::StatusOr<LimitId> MemoryStore::Register(const Limit& limit) {
  if (absl::Status status = engine_->PrepareFor(limit); !status.ok()) return status;
  return engine_->limits.Register(limit);
}

void MemoryStore::Release(LimitId id, Now now) { engine_->limits.Release(id, now); }

void MemoryStore::Prefetch(const Hash128& key) const noexcept {
  engine_->table.Prefetch(memory::Place(key));
}

void MemoryStore::Apply(std::span<ClaimGroup> groups, Now now) noexcept {
  if (groups.size() > 1) {
    engine_->ApplyAll(groups, now);
  } else if (!groups.empty()) {
    engine_->Apply(groups.front(), now);
  }
}

void MemoryStore::Undo(Claim& claim, std::uint64_t units, Now now) noexcept {
  engine_->Undo(claim, units, now);
}

bool MemoryStore::Renew(const Claim& claim, Now now) noexcept { return engine_->Renew(claim, now); }

MemoryStats MemoryStore::Stats(Now now) const {
  using memory::Count;
  constexpr std::size_t kSampledLines = 1024;
  Engine& engine = *engine_;
  engine.limits.NoteTime(now);
  MemoryStats stats;
  stats.max_keys = engine.max_keys;
  stats.table_slots = engine.table.lines().size() * memory::kSlotsPerLine;
  stats.inserted = engine.counters.Sum(Count::kInserted);
  stats.reclaimed = engine.counters.Sum(Count::kReclaimed);
  stats.evicted = engine.counters.Sum(Count::kEvicted);
  // Counters of different moments: never below 0.
  const std::uint64_t left = stats.reclaimed + stats.evicted;
  stats.table_slots_occupied = stats.inserted > left ? stats.inserted - left : 0;
  {
    const memory::LimitRegistry::Reading reading = engine.limits.Read();
    stats.keys_live = stats.table_slots * engine.eviction.LiveShare(kSampledLines, now) >> 32;
  }
  stats.bytes = engine.BytesTaken();
  stats.damaged = engine.counters.Sum(Count::kDamaged);
  stats.conversions = engine.counters.Sum(Count::kConversions);
  stats.outside_blocks = engine.arena.capacity();
  stats.outside_blocks_used = engine.arena.used();
  stats.events_dropped = engine.counters.Sum(Count::kEventsDropped);
  stats.concurrency_slots = engine.concurrency.capacity();
  stats.concurrency_slots_used = engine.concurrency.used();
  stats.refused = engine.counters.Sum(Count::kRefused);
  stats.limits = engine.limits.size();
  return stats;
}

}  // namespace sluice
