#include "sluice/store/redis/internal/undo_words.h"

#include <algorithm>
#include <variant>

#include "sluice/store/redis/internal/state_text.h"
#include "sluice/store/redis/internal/whole_numbers.h"

namespace sluice::redis {
namespace {

constexpr std::int64_t kNsInUs = 1000;
constexpr std::int64_t kNsInS = 1'000'000'000;

// Ticks of `units`; rounded down where they are a part of what was charged, so that what stays
// charged is never less than the units that stay (token_bucket.h).
std::uint64_t TicksOf(const token_bucket::Limit& pace, std::uint64_t units, bool part) {
  const Uint128 product = Uint128{units} * pace.period_ticks;
  return static_cast<std::uint64_t>(part ? product / pace.units
                                         : CeilDiv(product, Uint128{pace.units}));
}

UndoWords Bucket(const token_bucket::Limit& limit, const Receipt& receipt, std::uint64_t units) {
  const Instant back = InstantOf(limit, TicksOf(limit, units, units != receipt.units));
  const Instant before = InstantOf(limit, static_cast<std::uint64_t>(receipt.before));
  const Instant charged = InstantOf(limit, static_cast<std::uint64_t>(receipt.charged_at));
  const Instant undone = InstantOf(limit, receipt.undone_before);
  return {{back.us, back.ticks, before.us, before.ticks, charged.us, charged.ticks, undone.us,
           undone.ticks}};
}

UndoWords Queue(const leaky_bucket::Limit& limit, const Receipt& receipt, std::uint64_t units) {
  const auto start = static_cast<std::uint64_t>(std::max(receipt.before, receipt.charged_at));
  const Instant end = InstantOf(limit.pace, start + TicksOf(limit.pace, receipt.units, false));
  const Instant till =
      InstantOf(limit.pace, start + TicksOf(limit.pace, receipt.units - units, false));
  return {{end.us, end.ticks, till.us, till.ticks}};
}

}  // namespace

UndoWords UndoWordsOf(const ScriptLimit& limit, const Receipt& receipt, std::uint64_t units,
                      std::uint32_t phase_bits) {
  if (const auto* bucket = std::get_if<token_bucket::Limit>(&limit.limit())) {
    return Bucket(*bucket, receipt, units);
  }
  if (const auto* queue = std::get_if<leaky_bucket::Limit>(&limit.limit())) {
    return Queue(*queue, receipt, units);
  }
  std::int64_t marked = receipt.before;
  const auto* fixed = std::get_if<fixed_window::Limit>(&limit.limit());
  if (fixed != nullptr && fixed->align == fixed_window::Align::kFirstHit) marked /= kNsInUs;
  if (std::holds_alternative<calendar::Limit>(limit.limit())) marked /= kNsInS;
  if (const auto* log = std::get_if<sliding_window_log::Limit>(&limit.limit())) {
    marked = marked * log->tick.count() / kNsInUs;
  }
  return {{static_cast<std::int64_t>(units), marked, limit.PhaseOf(phase_bits).count() / kNsInUs}};
}

std::array<char, 16> SlotName(std::uint64_t slot) {
  std::array<char, 16> name;
  for (auto digit = name.rbegin(); digit != name.rend(); ++digit) {
    *digit = "0123456789abcdef"[slot % 16];
    slot /= 16;
  }
  return name;
}

}  // namespace sluice::redis
