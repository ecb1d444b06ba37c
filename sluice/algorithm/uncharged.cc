#include "sluice/algorithm/uncharged.h"

#include <variant>

namespace sluice {
namespace {

// The buckets' receipts hold the state before, and when that was.
Time ChargedAt(const token_bucket::Limit& limit, const Receipt& receipt) {
  return Time{Duration{receipt.charged_at / limit.ticks_per_ns}};
}

// All others count units up to a limit.
struct Before {
  const Decision& charged;
  const Receipt& receipt;

  Decision operator()(const token_bucket::Limit& limit) const {
    return AtRest(
        token_bucket::Decide(limit, {receipt.before}, 0, ChargedAt(limit, receipt)).decision);
  }
  Decision operator()(const leaky_bucket::Limit& limit) const {
    return AtRest(
        leaky_bucket::Decide(limit, {receipt.before}, 0, ChargedAt(limit.pace, receipt)).decision);
  }
  Decision operator()(const fixed_window::Limit& limit) const {
    return limit.align == fixed_window::Align::kFirstHit ? Emptied(limit.limit) : Counted();
  }
  // Their windows end when they do, whatever is in them.
  Decision operator()(const calendar::Limit&) const { return Counted(); }
  Decision operator()(const concurrency::Limit&) const { return Counted(); }
  Decision operator()(const sliding_window_counter::Limit& limit) const {
    return Emptied(limit.limit);
  }
  Decision operator()(const sliding_window_strict::Limit& limit) const {
    return Emptied(limit.limit);
  }
  Decision operator()(const sliding_window_log::Limit& limit) const { return Emptied(limit.limit); }

  [[nodiscard]] Decision AtRest(const Decision& rest) const {
    Decision decision = charged;
    decision.remaining = rest.remaining;
    decision.reset_after = rest.reset_after;
    return decision;
  }
  [[nodiscard]] Decision Counted() const {
    Decision decision = charged;
    decision.remaining += receipt.units;
    return decision;
  }
  // Nothing is owed where all of it remains.
  [[nodiscard]] Decision Emptied(std::uint64_t limit) const {
    Decision decision = Counted();
    if (decision.remaining == limit) decision.reset_after = Duration{0};
    return decision;
  }
};

}  // namespace

Decision Uncharged(const Limit& limit, const Decision& charged, const Receipt& receipt) {
  return std::visit(Before{charged, receipt}, limit);
}

}  // namespace sluice
