// How a snapshot is read.

#include <array>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "sluice/base/int128.h"
#include "sluice/store/memory/internal/outside_image.h"
#include "sluice/store/memory/internal/snapshot.h"
#include "sluice/store/memory/internal/snapshot_limit.h"
#include "sluice/store/memory/internal/snapshot_state.h"

namespace sluice::memory {
namespace {

// The lines of a table with `to` lines over which line `line` of one with `from` lines lies.
struct Cover {
  Cover(std::uint64_t line, std::uint64_t from, std::uint64_t to)
      : first(LineTable::Scale(FirstWhere(line, from), to)),
        last(LineTable::Scale(FirstWhere(line + 1, from) - 1, to)) {}

  // The least number that Scale() puts into `line`; 0, that is 2^64, behind the last line.
  static std::uint64_t FirstWhere(std::uint64_t line, std::uint64_t lines) {
    return static_cast<std::uint64_t>(((static_cast<Uint128>(line) << 64) + lines - 1) / lines);
  }

  std::uint64_t first;
  std::uint64_t last;
};

class Restore {
 public:
  Restore(SnapshotInput& input, const SnapshotHeader& header, const SnapshotParts& parts, Now now)
      : input_(input), header_(header), parts_(parts), at_(now, header.written_at) {}

  absl::Status Run() {
    while (const std::uint64_t record = input_.Varint()) {
      if (record == kLimitRecord) {
        TakeLimitRecord();
      } else {
        if (absl::Status status = TakeEntry(record - kFirstEntryRecord); !status.ok()) {
          return status;
        }
      }
      if (!input_.ok()) return input_.status();
    }
    if (const std::uint64_t told = input_.U64(); input_.ok() && told != entries_) {
      input_.Fail(absl::StrCat("has ", entries_, " entries instead of ", told));
    }
    input_.ExpectEnd();
    return input_.status();
  }

 private:
  // What a number in the file's tags means.
  struct Known {
    std::optional<Limit> limit;
    LimitId id = 0;    // in this store; 0: none of its states was taken over yet
    bool fits = true;  // there is room for a state of it at all
  };
  // A state on its way into slots.
  struct Entry {
    std::uint64_t fingerprint;
    Known& known;
    std::uint64_t word = 0;  // 0: it is image_
  };

  void TakeLimitRecord() {
    const std::uint64_t number = input_.Varint();
    if (number == 0 || number >= kMaxClasses) {
      return input_.Fail(absl::StrCat("has a limit with an impossible number, ", number));
    }
    const Limit limit = TakeLimit(input_);
    // The same number comes again and again, mostly with the same limit.
    if (known_[number].limit != limit) known_[number] = {.limit = limit};
  }

  absl::Status TakeEntry(std::uint64_t lines_ahead) {
    if (lines_ahead >= header_.shape.lines() - line_) {
      input_.Fail("has an entry behind the last line of its table");
      return input_.status();
    }
    line_ += lines_ahead;
    ++entries_;
    const std::uint64_t tag = input_.U64();
    Entry entry{.fingerprint = FingerprintOf(tag), .known = known_[ClassOf(tag)]};
    if (entry.fingerprint == 0 || !entry.known.limit) {
      input_.Fail("has an entry of no key, or of no limit");
      return input_.status();
    }
    if (!TakeState(entry) || !input_.ok()) return input_.status();
    if (absl::Status status = Adopt(entry.known); !status.ok()) return status;
    PutIntoLines(entry);
    return absl::OkStatus();
  }

  // False: it owes nothing any more, or cannot be read.
  bool TakeState(Entry& entry) {
    const Limit& limit = *entry.known.limit;
    const LimitTraits traits = TraitsOf(limit);
    const Now own_now = NowOf(traits, limit, entry.fingerprint, at_.AtLeastWritten());
    if (traits.keeper == Keeper::kWord) {
      entry.word = TakeWord(input_, limit, at_);
      return entry.word != 0 && DebtOfWord(limit, entry.word, own_now) > 0;
    }
    TakeImage(input_, limit, at_, image_);
    return input_.ok() && DebtOf(limit, image_, own_now) > 0;
  }

  absl::Status Adopt(Known& known) {
    if (known.id != 0) return absl::OkStatus();
    if (KeeperOf(*known.limit) != Keeper::kWord) {
      // A store that was given less room for such states refuses their limit; so they are let go
      // like any for which there is no room.
      known.fits = OutsideStates::MaxBlocks(*known.limit) <= parts_.arena.capacity();
      if (absl::Status status = parts_.arena.Open(); !status.ok()) return status;
    }
    const absl::StatusOr<LimitId> id = parts_.limits.Adopt(*known.limit, at_.now);
    if (id.ok()) known.id = *id;
    return id.status();
  }

  void PutIntoLines(const Entry& entry) {
    const TableShape& from = header_.shape;
    const TableShape to = parts_.table.shape();
    const bool in_stash = line_ >= from.main_lines;
    if (in_stash) parts_.table.UseStash();
    const Cover cover = in_stash ? Cover(line_ - from.main_lines, from.stash_lines, to.stash_lines)
                                 : Cover(line_, from.main_lines, to.main_lines);
    const std::span<Line> lines = parts_.table.lines().subspan(in_stash ? to.main_lines : 0);
    for (std::uint64_t line = cover.first; line <= cover.last; ++line) PutInto(lines[line], entry);
  }

  // Into a free slot, or one of a key that owes less.
  void PutInto(Line& line, const Entry& entry) {
    std::uint64_t word = entry.word;
    if (word == 0) {
      const BlockNumber head = entry.known.fits
                                   ? CopyIn(parts_.arena, parts_.eviction.outside(),
                                            parts_.eviction, *entry.known.limit, image_, at_.now)
                                   : 0;
      if (head == 0) return parts_.counters.Add(Count::kEvicted);
      word = WordOfHead(head);
    }
    const Seen state{.tag = entry.fingerprint | entry.known.id, .word = word};
    const Slot slot = LeastIn(line, OwedBy(state));
    parts_.counters.Add(Count::kInserted);
    if (!slot) return Drop(state);
    Seen before;
    if (slot.Read(before) && before.tag != 0) Drop(before);
    if (entry.word == 0) parts_.eviction.SetOwner(HeadOfWord(word), slot);
    slot.Publish(state);
  }

  // The slot of the line that owes the least; none if that is more than `debt`.
  Slot LeastIn(Line& line, std::uint64_t debt) {
    Slot least;
    std::uint64_t least_debt = debt;
    for (int i = 0; i < kSlotsPerLine; ++i) {
      const Slot slot(line, i);
      Seen seen;
      if (!slot.Read(seen)) continue;
      if (seen.tag == 0) return slot;
      if (const std::uint64_t owed = OwedBy(seen); owed < least_debt) {
        least = slot;
        least_debt = owed;
      }
    }
    return least;
  }

  std::uint64_t OwedBy(const Seen& seen) {
    const LimitTraits& traits = parts_.limits.traits(ClassOf(seen.tag));
    const Limit& limit = parts_.limits.limit(ClassOf(seen.tag));
    const Now now = NowOf(traits, limit, FingerprintOf(seen.tag), at_.AtLeastWritten());
    if (traits.keeper == Keeper::kWord) return DebtOfWord(limit, seen.word, now);
    return parts_.eviction.outside().DebtAtMost(limit, HeadOfWord(seen.word), now);
  }

  void Drop(const Seen& seen) {
    const LimitTraits& traits = parts_.limits.traits(ClassOf(seen.tag));
    if (traits.keeper != Keeper::kWord) parts_.eviction.outside().Free(HeadOfWord(seen.word));
    parts_.counters.Add(Count::kEvicted);
  }

  SnapshotInput& input_;
  const SnapshotHeader& header_;
  const SnapshotParts& parts_;
  const Restored at_;
  std::array<Known, kMaxClasses> known_;
  std::uint64_t line_ = 0;  // of the last entry, in the file's table
  std::uint64_t entries_ = 0;
  OutsideImage image_;
};

}  // namespace

absl::StatusOr<SnapshotHeader> ReadSnapshotHeader(SnapshotInput& input) {
  const auto kind = static_cast<HashKind>(input.U8());
  std::array<std::uint8_t, 32> secret{};
  for (std::uint8_t& byte : secret) byte = input.U8();
  if (input.ok() && kind != HashKind::kAes && kind != HashKind::kSipHash13) {
    input.Fail("has a hash of an unknown kind");
  }
  if (!input.ok()) return input.status();
  if (!HashKey::IsSupported(kind)) {
    return absl::FailedPreconditionError(
        input.Told("hashes its keys with AES instructions, which this processor does not have"));
  }
  const WallTime written_at{Duration{input.I64()}};
  const std::uint64_t max_keys = input.U64();
  const std::uint64_t main_lines = input.U64();
  const TableShape shape{.main_lines = main_lines, .stash_lines = input.U64()};
  // What no store writes; it bounds how many lines of a new table one of the old may lie over.
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  if (max_keys > kMost || main_lines > kMost || shape.stash_lines < 1 ||
      shape.stash_lines > main_lines || shape.lines() < max_keys / kSlotsPerLine) {
    input.Fail("has a table of an impossible size");
  }
  if (!input.ok()) return input.status();
  return SnapshotHeader{.hash_key = HashKey(kind, secret),
                        .written_at = written_at,
                        .max_keys = max_keys,
                        .shape = shape};
}

absl::Status ReadSnapshot(SnapshotInput& input, const SnapshotHeader& header,
                          const SnapshotParts& parts, std::uint64_t max_keys, Now now) {
  constexpr std::uint64_t kFactor = 8;
  if (header.max_keys > kFactor * max_keys || max_keys > kFactor * header.max_keys) {
    return absl::InvalidArgumentError(input.Told(
        absl::StrCat("is of a table of ", header.max_keys, " keys; one of max_keys ", max_keys,
                     " cannot take it over: at most ", kFactor, " times more or fewer")));
  }
  return std::make_unique<Restore>(input, header, parts, now)->Run();
}

}  // namespace sluice::memory
