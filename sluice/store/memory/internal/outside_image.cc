#include "sluice/store/memory/internal/outside_image.h"

#include <algorithm>

#include "sluice/store/memory/internal/event_log.h"
#include "sluice/store/memory/internal/strict_counts.h"

namespace sluice::memory {
namespace {

using LogLimit = sliding_window_log::Limit;
using StrictLimit = sliding_window_strict::Limit;

template <typename Image>
Image& As(OutsideImage& image) {
  if (auto* const held = std::get_if<Image>(&image)) return *held;
  return image.emplace<Image>();
}

void CopyLog(BlockArena& arena, const LogLimit& limit, BlockNumber head, LogImage& image) {
  const EventLog log(arena, head, limit.weighted);
  image.events.resize(log.size());
  for (std::uint64_t n = 0; n < image.events.size(); ++n) image.events[n] = log.at(n);
  image.units = log.sum();
  image.newest = log.latest();
}

BlockNumber MakeLog(BlockArena& arena, BlockSource& source, const LogLimit& limit,
                    const LogImage& image, BlockNumber head, Now now) {
  EventLog log(arena, head, limit.weighted);
  for (const sliding_window_log::Event& event : image.events) {
    while (!log.Append(event)) {
      if (!source.MakeFreeBlock(now)) log.DropOldest(1);
    }
  }
  log.set_latest(image.newest);
  return log.head();
}

}  // namespace

void CopyOut(BlockArena& arena, const Limit& limit, BlockNumber head, OutsideImage& image) {
  if (const auto* const log = std::get_if<LogLimit>(&limit)) {
    CopyLog(arena, *log, head, As<LogImage>(image));
  } else if (const auto* const strict = std::get_if<StrictLimit>(&limit)) {
    StrictCounts counts(arena, head, *strict);
    const sliding_window_strict::View from = counts.view();
    auto& to = As<StrictImage>(image);
    to.newest = from.newest;
    std::copy(from.counts.begin(), from.counts.end(), to.counts.begin());
  } else {
    As<SmallState>(image) = LoadSmall(arena, head);
  }
}

std::uint64_t DebtOf(const Limit& limit, OutsideImage& image, Now now) {
  if (const auto* const log = std::get_if<LogLimit>(&limit)) {
    return sliding_window_log::Debt(*log, std::get<LogImage>(image), now.steady);
  }
  if (const auto* const strict = std::get_if<StrictLimit>(&limit)) {
    return sliding_window_strict::Debt(*strict, std::get<StrictImage>(image).View(*strict),
                                       now.steady);
  }
  return sluice::DebtOf(limit, std::get<SmallState>(image), now);
}

BlockNumber CopyIn(BlockArena& arena, OutsideStates& states, BlockSource& source,
                   const Limit& limit, OutsideImage& image, Now now) {
  const BlockNumber head = states.Create(limit, now);
  if (head == 0) return 0;
  if (const auto* const log = std::get_if<LogLimit>(&limit)) {
    return MakeLog(arena, source, *log, std::get<LogImage>(image), head, now);
  }
  if (const auto* const strict = std::get_if<StrictLimit>(&limit)) {
    StrictCounts counts(arena, head, *strict);
    const sliding_window_strict::View from = std::get<StrictImage>(image).View(*strict);
    const sliding_window_strict::View to = counts.view();
    to.newest = from.newest;
    std::copy(from.counts.begin(), from.counts.end(), to.counts.begin());
    counts.Store(arena, head);
  } else {
    StoreSmall(arena, head, std::get<SmallState>(image));
  }
  return head;
}

}  // namespace sluice::memory
