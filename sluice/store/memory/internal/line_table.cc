#include "sluice/store/memory/internal/line_table.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

namespace sluice::memory {
namespace {

constexpr std::uint64_t kSlotsPerKey = 2;
constexpr std::uint64_t kMainLinesPerStashLine = 255;

TableShape ShapeFor(std::uint64_t lines, const TableShape& like) {
  constexpr std::uint64_t kTolerance = 32;  // one part in so many
  if (like.lines() > 0) {
    const std::uint64_t times = (lines + like.lines() / 2) / like.lines();
    const std::uint64_t whole = times * like.lines();
    const std::uint64_t off = whole > lines ? whole - lines : lines - whole;
    if (times > 0 && off <= lines / kTolerance) {
      return {times * like.main_lines, times * like.stash_lines};
    }
  }
  const std::uint64_t stash_lines =
      std::max<std::uint64_t>(lines / (kMainLinesPerStashLine + 1), 1);
  return {lines - stash_lines, stash_lines};
}

}  // namespace

absl::StatusOr<LineTable> LineTable::Open(std::uint64_t max_keys, const TableShape& like) {
  std::uint64_t lines =
      std::max<std::uint64_t>((max_keys * kSlotsPerKey + kSlotsPerLine - 1) / kSlotsPerLine, 2);
  // What lies apart counts too, where it is no great part: 32 bytes a key in all.
  constexpr std::uint64_t kApart = sizeof(Shared) / sizeof(Line) + 1;
  if (lines > 16 * kApart) lines -= kApart;
  const TableShape shape = ShapeFor(lines, like);
  absl::StatusOr<Pages> pages = Pages::Take(shape.lines() * sizeof(Line), "the table of keys");
  if (!pages.ok()) return pages.status();
  return LineTable(*std::move(pages), shape);
}

LineTable::LineTable(Pages pages, const TableShape& shape)
    : pages_(std::move(pages)),
      // All of a line's bytes 0 is a line of free slots. This loop only begins the objects'
      // lifetime; it compiles to the zeroing of pages that are there and zero.
      lines_(new (pages_.data()) Line[shape.lines()]()),
      main_lines_(shape.main_lines),
      stash_lines_(shape.stash_lines),
      shared_(std::make_unique<Shared>()) {}

void LineTable::PassAllLocks() {
  for (Stripe& stripe : shared_->locks) {
    stripe.lock.lock();
    stripe.lock.unlock();
  }
}

}  // namespace sluice::memory
