// The store's states in a file, and back.
//
//   header   hash key, when it was written, how large the table was
//   records  0                                   the end: how many entries there were
//            1, number, limit                    what a number in the tags behind it means
//            2 + lines to skip, tag, state       an entry: a slot that owed something
//
// in the order of the lines, as bytes of snapshot_file.h. The form of limits and states is in
// snapshot_limit.h and snapshot_state.h.
//
// Writing goes through the table in stretches of some thousand lines. It takes no lock that a
// request needs: a word is read as everybody reads it, and a state in blocks is copied while its
// slot is taken, so that this one key may have to wait. In between stretches a number may get
// another limit (limit_registry.h); so each stretch says again what the numbers in it mean.
//
// Reading into a table of another size. Of a key there is only the line where it was, and that is a
// slice of its hash; which other lines it may be in cannot be told from it. But the slices of two
// tables lie over each other (LineTable::Scale), so a line of the old table covers a few
// neighbouring ones of the new table, and the key's own line is one of them, whether it lay in its
// first, its second or its stash line. So it is put in all of these. The copies in the wrong lines
// harm nobody: a key is only found by 52 bits of another part of its hash, which no other key that
// looks there has (but for about 2 in 10^15). They take room until what they owe is over, and where
// there is none the least debt gives way, as always.
//
// In a table of the same size there are no copies, and everything has room. Nor is anything lost
// where the new table has a whole multiple of the old one's lines (LineTable::Open sees to that
// where it can): then each of its lines gets what one old line had, and no more.
//
// Everything that decides where a key lies and what its bits mean is part of the format: Place, the
// mixes and Scale of LineTable, the packed words of the windows, and HashKey. A change of these is
// another version in snapshot_file.cc; snapshot_test reads a file that an earlier build wrote.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/hash.h"
#include "sluice/base/time.h"
#include "sluice/store/memory/internal/block_arena.h"
#include "sluice/store/memory/internal/counters.h"
#include "sluice/store/memory/internal/eviction.h"
#include "sluice/store/memory/internal/limit_registry.h"
#include "sluice/store/memory/internal/line_table.h"
#include "sluice/store/memory/internal/snapshot_file.h"

namespace sluice::memory {

// The parts of a store that a snapshot is about. They outlive it.
struct SnapshotParts {
  LineTable& table;
  BlockArena& arena;
  LimitRegistry& limits;
  Eviction& eviction;
  Counters& counters;
};

struct SnapshotHeader {
  HashKey hash_key;
  WallTime written_at;
  std::uint64_t max_keys;
  TableShape shape;
};

// What a record begins with.
inline constexpr std::uint64_t kEndRecord = 0;
inline constexpr std::uint64_t kLimitRecord = 1;
inline constexpr std::uint64_t kFirstEntryRecord = 2;

// As MemoryStore::WriteSnapshot. `header.written_at` is now.wall.
absl::Status WriteSnapshot(const SnapshotParts& parts, const SnapshotHeader& header,
                           const std::string& path, Now now, Duration min_lifetime);

// The first of the file. Errors as MemoryStore::Open.
absl::StatusOr<SnapshotHeader> ReadSnapshotHeader(SnapshotInput& input);

// The rest of it, into a store that is empty and nobody else's yet. After an error the store is to
// be thrown away. `max_keys` is the store's own.
absl::Status ReadSnapshot(SnapshotInput& input, const SnapshotHeader& header,
                          const SnapshotParts& parts, std::uint64_t max_keys, Now now);

}  // namespace sluice::memory
