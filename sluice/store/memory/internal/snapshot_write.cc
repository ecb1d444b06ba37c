// How a snapshot is written.

#include <algorithm>
#include <array>
#include <utility>

#include "sluice/store/memory/internal/outside_image.h"
#include "sluice/store/memory/internal/snapshot.h"
#include "sluice/store/memory/internal/snapshot_bytes.h"
#include "sluice/store/memory/internal/snapshot_limit.h"
#include "sluice/store/memory/internal/snapshot_state.h"

namespace sluice::memory {
namespace {

class Scan {
 public:
  Scan(const SnapshotParts& parts, Now now, Duration min_lifetime)
      : parts_(parts), now_(now), min_lifetime_(min_lifetime) {}

  // Appends the entries of some of the lines from `line` on. Returns the first line that is left.
  std::uint64_t Stretch(std::uint64_t line, std::string& out) {
    constexpr std::uint64_t kLines = 4096;
    constexpr std::size_t kEnoughBytes = std::size_t{1} << 20;
    const LimitRegistry::Reading reading = parts_.limits.Read();
    wanted_.fill(Wanted::kNotAsked);  // the numbers may mean other limits than the last time
    const std::span<Line> lines = parts_.table.lines();
    const std::uint64_t end = std::min<std::uint64_t>(lines.size(), line + kLines);
    for (; line < end && out.size() < kEnoughBytes; ++line) {
      for (int i = 0; i < kSlotsPerLine; ++i) Add(line, Slot(lines[line], i), out);
    }
    return line;
  }

  [[nodiscard]] std::uint64_t entries() const { return entries_; }

 private:
  enum class Wanted : std::uint8_t { kNotAsked, kNo, kYes, kWritten };

  Wanted& WantedOf(LimitId id) {
    Wanted& wanted = wanted_[id];
    if (wanted == Wanted::kNotAsked) {
      const bool long_enough = LifetimeOf(parts_.limits.limit(id)) >= min_lifetime_;
      wanted = long_enough ? Wanted::kYes : Wanted::kNo;
    }
    return wanted;
  }

  void Add(std::uint64_t line, const Slot& slot, std::string& out) {
    for (unsigned turn = 0;; ++turn) {
      Seen seen;
      if (slot.Read(seen)) {
        if (seen.tag == 0 || WantedOf(ClassOf(seen.tag)) == Wanted::kNo) return;
        if (AddSeen(line, slot, seen, out)) return;
      }
      WaitTurn(turn);
    }
  }

  // False: the slot is not that any more.
  bool AddSeen(std::uint64_t line, const Slot& slot, const Seen& seen, std::string& out) {
    const LimitId id = ClassOf(seen.tag);
    const LimitTraits& traits = parts_.limits.traits(id);
    const Limit& limit = parts_.limits.limit(id);
    const Now own_now = NowOf(traits, limit, FingerprintOf(seen.tag), now_);
    if (traits.keeper == Keeper::kWord) {
      if (DebtOfWord(limit, seen.word, own_now) == 0) return true;
      BeginEntry(line, seen.tag, limit, out);
      PutWord(out, limit, seen.word, now_);
      return true;
    }
    if (!slot.Take(seen)) return false;
    CopyOut(parts_.arena, limit, HeadOfWord(seen.word), image_);
    slot.Publish(seen);
    if (DebtOf(limit, image_, own_now) == 0) return true;
    BeginEntry(line, seen.tag, limit, out);
    PutImage(out, limit, image_, now_);
    return true;
  }

  void BeginEntry(std::uint64_t line, std::uint64_t tag, const Limit& limit, std::string& out) {
    Wanted& wanted = WantedOf(ClassOf(tag));
    if (wanted != Wanted::kWritten) {
      PutVarint(out, kLimitRecord);
      PutVarint(out, ClassOf(tag));
      PutLimit(out, limit);
      wanted = Wanted::kWritten;
    }
    PutVarint(out, kFirstEntryRecord + (line - std::exchange(line_, line)));
    PutU64(out, tag);
    ++entries_;
  }

  const SnapshotParts& parts_;
  const Now now_;
  const Duration min_lifetime_;
  std::array<Wanted, kMaxClasses> wanted_{};  // by number of limit
  std::uint64_t line_ = 0;                    // of the last entry
  std::uint64_t entries_ = 0;
  OutsideImage image_;
};

std::string HeaderBytes(const SnapshotHeader& header) {
  std::string out;
  PutU8(out, static_cast<std::uint8_t>(header.hash_key.kind()));
  for (const std::uint8_t byte : header.hash_key.secret()) PutU8(out, byte);
  PutI64(out, header.written_at.time_since_epoch().count());
  PutU64(out, header.max_keys);
  PutU64(out, header.shape.main_lines);
  PutU64(out, header.shape.stash_lines);
  return out;
}

}  // namespace

absl::Status WriteSnapshot(const SnapshotParts& parts, const SnapshotHeader& header,
                           const std::string& path, Now now, Duration min_lifetime) {
  absl::StatusOr<SnapshotOutput> output = SnapshotOutput::Create(path);
  if (!output.ok()) return output.status();
  Scan scan(parts, now, min_lifetime);
  std::string bytes = HeaderBytes(header);
  for (std::uint64_t line = 0; line < header.shape.lines();) {
    line = scan.Stretch(line, bytes);
    // Between the stretches: the disk may take its time, and no reload is to wait for it.
    if (absl::Status status = output->Append(bytes); !status.ok()) return status;
    bytes.clear();
  }
  PutVarint(bytes, kEndRecord);
  PutU64(bytes, scan.entries());
  if (absl::Status status = output->Append(bytes); !status.ok()) return status;
  return output->Commit();
}

}  // namespace sluice::memory
