#include "sluice/store/memory/internal/eviction.h"

#include <algorithm>
#include <limits>

namespace sluice::memory {
namespace {

constexpr int kDebtShift = 8;

std::uint64_t Shifted(std::uint64_t units) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() >> kDebtShift;
  return std::min(units, kMost) << kDebtShift;
}

// Of a word that is an instant; the common case in a flood, so without a visit to the limit.
std::uint64_t DebtOfInstant(const LimitTraits& traits, std::uint64_t word, Time now) {
  const std::int64_t now_ticks = now.time_since_epoch().count() * traits.ticks_per_ns;
  const auto instant = static_cast<std::int64_t>(word);
  if (instant <= now_ticks) return 0;
  const std::uint64_t ticks =
      static_cast<std::uint64_t>(instant) - static_cast<std::uint64_t>(now_ticks);
  const auto interval = static_cast<std::uint64_t>(traits.interval);
  const std::uint64_t parts = ticks % interval;
  // The part in 1/256 rounds up, so that a debt is never 0.
  const std::uint64_t part =
      parts <= interval >> kDebtShift ? 1 : parts / ((interval >> kDebtShift) + 1) + 1;
  return Shifted(ticks / interval) + (parts == 0 ? 0 : part);
}

}  // namespace

std::optional<std::uint64_t> Eviction::DebtOf(const Slot& slot, const Seen& seen, Now now) {
  if (seen.tag == 0) return 0;
  const LimitId id = ClassOf(seen.tag);
  const LimitTraits& traits = limits_.traits(id);
  if (traits.ticks_per_ns > 0) return DebtOfInstant(traits, seen.word, now.steady);
  const Limit& limit = limits_.limit(id);
  const Now own_now = NowOf(traits, limit, FingerprintOf(seen.tag), now);
  if (traits.keeper == Keeper::kWord) return Shifted(DebtOfWord(limit, seen.word, own_now));
  // Blocks may only be looked at by who has the slot.
  if (!slot.Take(seen)) return std::nullopt;
  const std::uint64_t debt = outside_.DebtAtMost(limit, HeadOfWord(seen.word), own_now);
  slot.Publish(seen);
  return Shifted(debt);
}

int Eviction::ScanLine(Line& line, Now now, Candidates& all, Candidate& free) {
  int live = 0;
  for (int i = 0; i < kSlotsPerLine; ++i) {
    Candidate candidate{.slot = Slot(line, i)};
    std::optional<std::uint64_t> debt;
    if (candidate.slot.Read(candidate.seen)) debt = DebtOf(candidate.slot, candidate.seen, now);
    if (debt && *debt == 0) {
      free = candidate;
      continue;
    }
    ++live;
    if (!debt) continue;  // changing just now: somebody's, and not to be had
    candidate.debt = *debt;
    all.slots[static_cast<std::size_t>(all.count++)] = candidate;
  }
  return live;
}

std::optional<Eviction::Candidate> Eviction::ChooseVictim(const Place& place, Now now) {
  constexpr int kEnoughInFirst = 2;
  Candidates live;
  Candidate in_first;
  Candidate in_second;
  const int first = ScanLine(table_.First(place), now, live, in_first);
  if (first < kEnoughInFirst) return in_first;
  const int second = ScanLine(table_.Second(place), now, live, in_second);
  if (std::min(first, second) < kSlotsPerLine) return second < first ? in_second : in_first;

  Candidate in_stash;
  const int stash = ScanLine(table_.Stash(place), now, live, in_stash);
  if (stash < kSlotsPerLine) {
    table_.UseStash();
    return in_stash;
  }
  if (live.count == 0) return std::nullopt;
  const auto end = live.slots.begin() + live.count;
  const Candidate least =
      *std::min_element(live.slots.begin(), end,
                        [](const Candidate& a, const Candidate& b) { return a.debt < b.debt; });
  if (&least.slot.line() == &table_.Stash(place)) table_.UseStash();
  return least;
}

bool Eviction::TakeOver(const Candidate& victim, const Seen& state, Now now) {
  if (!victim.slot.Take(victim.seen)) return false;
  if (victim.seen.tag != 0) {
    const LimitId id = ClassOf(victim.seen.tag);
    const LimitTraits& traits = limits_.traits(id);
    if (traits.keeper != Keeper::kWord) {
      // A charge in between changes blocks, not the word.
      const Limit& limit = limits_.limit(id);
      const Now own_now = NowOf(traits, limit, FingerprintOf(victim.seen.tag), now);
      const BlockNumber head = HeadOfWord(victim.seen.word);
      if (Shifted(outside_.DebtAtMost(limit, head, own_now)) > victim.debt) {
        victim.slot.Publish(victim.seen);
        return false;
      }
      outside_.Free(head);
    }
    counters_.Add(victim.debt == 0 ? Count::kReclaimed : Count::kEvicted);
  }
  victim.slot.Publish(state);
  return true;
}

void Eviction::Insert(const Place& place, LimitId id, std::uint64_t word, Now now) {
  const bool outside = limits_.traits(id).keeper != Keeper::kWord;
  for (unsigned turn = 0;; ++turn) {
    const std::optional<Candidate> chosen = ChooseVictim(place, now);
    if (chosen) {
      if (outside) SetOwner(HeadOfWord(word), chosen->slot);
      if (TakeOver(*chosen, {.tag = place.fingerprint | id, .word = word}, now)) break;
    }
    WaitTurn(turn);
  }
  counters_.Add(Count::kInserted);
}

std::optional<Eviction::Candidate> Eviction::CandidateAt(BlockNumber block, Now now) {
  const std::optional<std::uint32_t> owner = arena_.OwnerOf(block);
  if (!owner) return std::nullopt;
  Candidate candidate{.slot = table_.SlotOf(*owner)};
  if (!candidate.slot.Read(candidate.seen) || candidate.seen.tag == 0) return std::nullopt;
  if (candidate.seen.word != WordOfHead(block)) return std::nullopt;
  if (limits_.traits(ClassOf(candidate.seen.tag)).keeper == Keeper::kWord) return std::nullopt;
  const std::optional<std::uint64_t> debt = DebtOf(candidate.slot, candidate.seen, now);
  if (!debt) return std::nullopt;
  candidate.debt = *debt;
  return candidate;
}

bool Eviction::MakeFreeBlock(Now now) {
  constexpr int kSample = 64;  // blocks looked at in one go
  constexpr int kGoes = 64;    // a go may meet nothing but the inner blocks of long logs
  const BlockNumber highest = arena_.highest();
  if (highest == 0) return false;
  for (int go = 0; go < kGoes; ++go) {
    std::optional<Candidate> least;
    for (int i = 0; i < kSample; ++i) {
      const BlockNumber block = 1 + hand_.fetch_add(1, std::memory_order_relaxed) % highest;
      const std::optional<Candidate> found = CandidateAt(block, now);
      if (found && (!least || found->debt < least->debt)) least = found;
      if (least && least->debt == 0) break;
    }
    if (least && TakeOver(*least, {}, now)) return true;
  }
  return false;
}

void Eviction::Sweep(const LimitRegistry::Ids& ids) {
  for (Line& line : table_.lines()) {
    for (int i = 0; i < kSlotsPerLine; ++i) SweepSlot(Slot(line, i), ids);
  }
  // Whoever read a number out of the table before, under a stripe's lock, is done with it now.
  table_.PassAllLocks();
}

void Eviction::SweepSlot(const Slot& slot, const LimitRegistry::Ids& ids) {
  for (unsigned turn = 0;; ++turn) {
    Seen seen;
    if (slot.Read(seen)) {
      if (seen.tag == 0 || !ids.test(ClassOf(seen.tag))) return;
      if (slot.Take(seen)) {
        const bool outside = limits_.traits(ClassOf(seen.tag)).keeper != Keeper::kWord;
        if (outside) outside_.Free(HeadOfWord(seen.word));
        counters_.Add(Count::kReclaimed);
        slot.Publish({});
        return;
      }
    }
    WaitTurn(turn);
  }
}

std::uint64_t Eviction::LiveShare(std::size_t lines, Now now) {
  const std::span<Line> all = table_.lines();
  const std::size_t step = std::max<std::size_t>(all.size() / lines, 1);
  std::uint64_t seen_slots = 0;
  std::uint64_t live = 0;
  for (std::size_t at = 0; at < all.size(); at += step) {
    Candidates ignored;
    Candidate free;
    live += static_cast<std::uint64_t>(ScanLine(all[at], now, ignored, free));
    seen_slots += kSlotsPerLine;
  }
  return (live << 32) / seen_slots;
}

}  // namespace sluice::memory
