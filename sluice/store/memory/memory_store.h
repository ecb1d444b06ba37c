// The store in this process's own memory: fixed in size, no server to start, one cache line a key.
//
//   key, 128-bit keyed hash --> two candidate lines and one stash line, 64 bytes each
//
//     | tag tag tag tag | word word word word |       tag:  52 bits of the key's hash | 12 bits of
//                                    |                      the limit that wrote the word
//                                    v                word: the whole state, or where it lies
//                           blocks of 128 bytes             (logs, strict counters, calendars)
//
// Guarantees
//   * A hit is one compare-and-swap; a denial and a look write nothing (where the state is a word).
//     Nothing is allocated but in Open(), Register() and WriteSnapshot().
//   * A key that owes nothing is the same as an absent one and makes room when somebody needs it:
//     no sweeper, no time stamps, no pause.
//   * When there is no room left, the key that owes the fewest units among those in the way makes
//     room, and is counted (MemoryStats::evicted). Nobody is denied for want of memory, apart
//     from concurrency slots, which are refused rather than evicted (MemoryStats::refused).
//   * A key that is met under other numbers than it was written with (a reload, another plan) keeps
//     what it owes, in units. Where it owes more than the new limit could hold it stays as it is,
//     full under the new numbers, until it owes less: two rule sets in force at once, as during a
//     reload, cannot mint by turns.
//   * A charge that was made under other numbers than the key has now cannot be undone any more
//     (nothing returns).
//
// Cost: 32 bytes for each of `max_keys`, all there from the start, and for states outside of the
// lines one block and more (4 bytes an event in a log, 8 where costs vary).
//
// Keys must come from hash_key(): the table keeps no other part of them. Two keys that share 52
// bits of the hash and a line are taken for one: about 2 in 10^15 new keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/hash.h"
#include "sluice/base/time.h"
#include "sluice/store/store.h"

namespace sluice {

// Every bound of the store. What does not fit in memory at all fails in Open(), not later.
struct MemoryStoreOptions {
  // Keys that may owe something at the same time; 1 to 2^30, 32 bytes each.
  std::uint64_t max_keys = 1'000'000;
  // For states that do not fit a word: logs, strict counters, calendars, first-hit windows, very
  // large limits; 0 to 2^38. Taken from the system when the first such limit is registered.
  std::uint64_t outside_bytes = std::uint64_t{64} << 20;
  // Concurrency: slots held at the same time over all keys; 0 to 2^26, about 100 bytes each, taken
  // from the system when the first such limit is registered.
  std::uint32_t max_slots = 65'536;
  // A file written by WriteSnapshot(), read in Open(). Empty, or no such file: the store starts
  // empty.
  std::string snapshot;
  // For tests; else drawn at random, or the snapshot's.
  std::optional<HashKey> hash_key;
};

// Counted since Open(). Cheap enough to be read each second.
struct MemoryStats {
  std::uint64_t max_keys = 0;
  std::uint64_t table_slots = 0;           // in the lines: about twice max_keys
  std::uint64_t table_slots_occupied = 0;  // including keys that owe nothing any more
  std::uint64_t keys_live = 0;             // keys that owe something: an estimate from a sample
  std::uint64_t bytes = 0;                 // all that is taken from the system

  std::uint64_t inserted = 0;
  std::uint64_t reclaimed = 0;    // slots whose key owed nothing, taken by another
  std::uint64_t evicted = 0;      // keys that still owed something, forgotten for want of room
  std::uint64_t damaged = 0;      // impossible states (a window far ahead of now), dropped
  std::uint64_t conversions = 0;  // states taken over under other numbers

  std::uint64_t outside_blocks = 0;
  std::uint64_t outside_blocks_used = 0;
  std::uint64_t events_dropped = 0;  // log events forgotten early: not even eviction made room

  std::uint64_t concurrency_slots = 0;
  std::uint64_t concurrency_slots_used = 0;
  std::uint64_t refused = 0;  // concurrency: denied because the table of slots was full

  std::uint64_t limits = 0;  // registered, or released and maybe still alive in some state
};

class MemoryStore final : public Store {
 public:
  // Takes the memory, and what the snapshot holds. Times in it are counted by the wall clock that
  // passed since it was written (none, if that clock stepped back). Its limits are known as if they
  // had been released just now; registered again, by the same numbers, they have the same id.
  //
  // Nothing is lost where max_keys is what it was, or a whole multiple of it. With another number
  // some keys may find no room, those that owe the least first (MemoryStats::evicted).
  //
  //   kInvalidArgument    an option out of its range; a snapshot of a table more than 8 times
  //                       larger or smaller, or of another hash_key than the option's
  //   kResourceExhausted  the system does not have the memory
  //   kDataLoss           the snapshot is damaged, cut short, or no snapshot at all
  //   kFailedPrecondition the snapshot is of a later version, or its hash needs another processor
  //   kPermissionDenied, kUnavailable   the snapshot cannot be read
  static absl::StatusOr<std::unique_ptr<MemoryStore>> Open(const MemoryStoreOptions& options,
                                                           Now now);
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  // The one that all keys must be hashed with. Never changes.
  [[nodiscard]] const HashKey& hash_key() const;

  // At most 4095 limits at a time; ids of released ones come back once no state of theirs can
  // matter any more. kResourceExhausted: too many limits; one key of it may need more than
  // outside_bytes; max_slots is 0; or the system lacks the memory that the first such limit takes.
  absl::StatusOr<LimitId> Register(const Limit& limit) override;
  void Release(LimitId id, Now now) override;

  void Prefetch(const Hash128& key) const noexcept override;
  void Apply(std::span<ClaimGroup> groups, Now now) noexcept override;
  void Undo(Claim& claim, std::uint64_t units, Now now) noexcept override;
  bool Renew(const Claim& claim, Now now) noexcept override;

  // Writes all states whose limit has a lifetime of at least `min_lifetime` to `path`: to a file
  // beside it first (mode 0600), synced and renamed, so that there is always a whole one. May run
  // while others decide: each key is consistent by itself, keys among each other are of slightly
  // different moments. Concurrency slots are left out: their holders end with the process.
  // The file holds the hash key, but no key of a client. A call waits for one before it that writes
  // the same file, in this process or in another one.
  //
  //   kPermissionDenied   the file, or the one beside it, cannot be written
  //   kResourceExhausted  the disk is full
  //   kUnavailable        all else that the system says; the file is then as it was before
  absl::Status WriteSnapshot(const std::string& path, Now now,
                             Duration min_lifetime = std::chrono::seconds{10});

  [[nodiscard]] MemoryStats Stats(Now now) const;

 private:
  class Engine;
  explicit MemoryStore(std::unique_ptr<Engine> engine);

  const std::unique_ptr<Engine> engine_;
};

}  // namespace sluice
