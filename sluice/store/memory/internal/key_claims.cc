#include "sluice/store/memory/internal/key_claims.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "sluice/algorithm/packed.h"

namespace sluice::memory {
namespace {

// A decision about a cost that is not charged: its verdict and waits, with what there is without
// it.
Decision Uncharged(Decision decision, const Decision& at_rest) {
  decision.remaining = at_rest.remaining;
  decision.reset_after = at_rest.reset_after;
  return decision;
}

}  // namespace

std::uint64_t ForcedDebt(const Limit& limit) {
  const std::uint64_t capacity = CapacityOf(limit);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return capacity > kMost / 2 ? kMost : 2 * capacity;
}

KeyClaims::Asked::Asked(const Claim& claim, const LimitTraits& traits_of_limit, How how_asked,
                        Now now_given)
    : place(claim.key),
      id(claim.limit_id),
      how(how_asked),
      limit(*claim.limit),
      traits(traits_of_limit),
      cost(claim.cost),
      now(NowOf(traits, limit, place.fingerprint, now_given)),
      common_now(now_given) {}

void KeyClaims::Look(Claim& claim, Now now) { Ask(claim, How::kLook, now); }
void KeyClaims::Force(Claim& claim, Now now) { Ask(claim, How::kForce, now); }
void KeyClaims::Charge(Claim& claim, Now now) {
  if (ChargeAtOnce(claim, limits_.traits(claim.limit_id), now)) [[likely]] {
    return;
  }
  Ask(claim, How::kCharge, now);
}

bool KeyClaims::ChargeAtOnce(Claim& claim, const LimitTraits& traits, Now now) {
  if (traits.keeper != Keeper::kWord || traits.phased) return false;
  const Place place(claim.key);
  // Before the word; see AskWord.
  const std::uint64_t undone = table_.Undone(place).load(std::memory_order_acquire);
  const Slot slot = table_.Find(place);
  Seen seen;
  if (!slot || !slot.Read(seen) || seen.tag != (place.fingerprint | claim.limit_id)) return false;
  const auto settle = [&](const Step<std::uint64_t>& step) {
    if (step.damaged) return false;
    if (step.receipt.units > 0 && !slot.Replace(seen.word, step.next)) return false;
    claim.decision = step.decision;
    claim.receipt = step.receipt;
    claim.receipt.undone_before = undone;
    return true;
  };
  // Apart, so that a step of the token bucket is never put together in memory.
  if (const auto* bucket = std::get_if<token_bucket::Limit>(claim.limit)) [[likely]] {
    const token_bucket::State state{static_cast<std::int64_t>(seen.word)};
    return settle(sluice::internal::AsWord(Decide(*bucket, state, claim.cost, now.steady)));
  }
  return settle(sluice::internal::DecideOtherWord(*claim.limit, seen.word, claim.cost, now));
}

void KeyClaims::Ask(Claim& claim, How how, Now now) {
  const Asked asked(claim, limits_.traits(claim.limit_id), how, now);
  const Answer answer = asked.traits.keeper == Keeper::kWord ? AskWord(asked) : AskBlocks(asked);
  claim.decision = answer.decision;
  claim.receipt = answer.receipt;
}

KeyClaims::Met KeyClaims::Meet(const Asked& asked, Slot& slot, Seen& seen) const {
  for (unsigned turn = 0;; ++turn) {
    slot = table_.Find(asked.place);
    if (!slot) return Met::kAbsent;
    if (slot.Read(seen) && FingerprintOf(seen.tag) == asked.place.fingerprint) [[likely]] {
      return ClassOf(seen.tag) == asked.id ? Met::kOwn : Met::kOther;
    }
    // Its keeper is at work, or it went to another key after it was found.
    WaitTurn(turn);
  }
}

Step<std::uint64_t> KeyClaims::DecideOnWord(const Asked& asked, std::uint64_t word) const {
  if (asked.how == How::kForce) {
    return ChargeWord(asked.limit, word, asked.cost, asked.now, ForcedDebt(asked.limit));
  }
  return DecideWord(asked.limit, word, asked.cost, asked.now);
}

KeyClaims::Answer KeyClaims::AskWord(const Asked& asked) {
  for (;;) {
    // Read before the word: what is given back in between then counts as given back after the
    // charge, which errs to the safe side.
    const std::uint64_t undone =
        asked.traits.counts_undone ? table_.Undone(asked.place).load(std::memory_order_acquire) : 0;
    Slot slot;
    Seen seen;
    const Met met = Meet(asked, slot, seen);
    if (met == Met::kOther) [[unlikely]] {
      const std::lock_guard lock(table_.Lock(asked.place));
      if (const std::optional<Answer> full = Convert(asked, slot, seen)) return *full;
      continue;
    }
    const std::uint64_t word = met == Met::kOwn ? seen.word : 0;
    const Step<std::uint64_t> step = DecideOnWord(asked, word);
    if (step.damaged) counters_.Add(Count::kDamaged);
    if (step.receipt.units == 0) return {step.decision, {}};
    if (asked.how == How::kLook) {
      const Step<std::uint64_t> rest = DecideWord(asked.limit, word, 0, asked.now);
      return {Uncharged(step.decision, rest.decision), {}};
    }
    if (met == Met::kOwn ? slot.Replace(word, step.next) : InsertWord(asked, step.next)) {
      Answer answer{step.decision, step.receipt};
      answer.receipt.undone_before = undone;
      return answer;
    }
  }
}

bool KeyClaims::InsertWord(const Asked& asked, std::uint64_t word) {
  const std::lock_guard lock(table_.Lock(asked.place));
  if (table_.Find(asked.place)) return false;
  eviction_.Insert(asked.place, asked.id, word, asked.common_now);
  return true;
}

KeyClaims::Answer KeyClaims::DecideOnBlocks(const Asked& asked, BlockNumber& head) {
  OutsideStates& states = eviction_.outside();
  OutsideAnswer answer;
  switch (asked.how) {
    case How::kLook:
      answer = states.Decide(asked.limit, head, asked.cost, asked.now);
      if (asked.cost > 0 && answer.decision.allowed()) {
        const OutsideAnswer rest = states.Decide(asked.limit, head, 0, asked.now);
        answer.decision = Uncharged(answer.decision, rest.decision);
      }
      break;
    case How::kCharge:
      answer = states.Charge(asked.limit, head, asked.cost, asked.now);
      break;
    case How::kForce:
      answer = states.Force(asked.limit, head, asked.cost, asked.now, ForcedDebt(asked.limit));
      break;
  }
  if (answer.damaged) counters_.Add(Count::kDamaged);
  return {answer.decision, answer.receipt};
}

KeyClaims::Answer KeyClaims::AskBlocks(const Asked& asked) {
  const std::lock_guard lock(table_.Lock(asked.place));
  for (unsigned turn = 0;; ++turn) {
    Slot slot;
    Seen seen;
    switch (Meet(asked, slot, seen)) {
      case Met::kAbsent:
        return AskBlocksAbsent(asked);
      case Met::kOther:
        if (const std::optional<Answer> full = Convert(asked, slot, seen)) return *full;
        break;
      case Met::kOwn:
        if (slot.Take(seen)) {
          BlockNumber head = HeadOfWord(seen.word);
          const Answer answer = DecideOnBlocks(asked, head);
          slot.Publish({.tag = seen.tag, .word = WordOfHead(head)});
          return answer;
        }
        WaitTurn(turn);
        break;
    }
  }
}

KeyClaims::Answer KeyClaims::AskBlocksAbsent(const Asked& asked) {
  OutsideStates& states = eviction_.outside();
  const OutsideAnswer absent = OutsideStates::DecideAbsent(asked.limit, asked.cost, asked.now);
  if (asked.how == How::kLook && absent.decision.allowed()) {
    const OutsideAnswer rest = OutsideStates::DecideAbsent(asked.limit, 0, asked.now);
    return {Uncharged(absent.decision, rest.decision), {}};
  }
  const bool charges = asked.how == How::kForce ? asked.cost > 0 : absent.receipt.units > 0;
  if (!charges || asked.how == How::kLook) return {absent.decision, {}};

  BlockNumber head = states.Create(asked.limit, asked.now);
  if (head == 0) {
    // No block at all could be made free: let through and forgotten rather than denied.
    counters_.Add(Count::kEventsDropped);
    return {absent.decision, {}};
  }
  const Answer answer = DecideOnBlocks(asked, head);
  if (answer.receipt.units == 0) {
    states.Free(head);
  } else {
    eviction_.Insert(asked.place, asked.id, WordOfHead(head), asked.common_now);
  }
  return answer;
}

void KeyClaims::Undo(const Claim& claim, std::uint64_t units, Now now) {
  const Asked asked(claim, limits_.traits(claim.limit_id), How::kLook, now);
  const std::lock_guard lock(table_.Lock(asked.place));
  if (asked.traits.keeper == Keeper::kWord) {
    UndoWord(asked, claim.receipt, units);
  } else {
    UndoBlocks(asked, claim.receipt, units);
  }
}

void KeyClaims::UndoWord(const Asked& asked, const Receipt& receipt, std::uint64_t units) {
  std::atomic<std::uint64_t>& undone = table_.Undone(asked.place);
  std::uint64_t added = 0;  // by this call, in turns that lost the race for the word
  for (;;) {
    Slot slot;
    Seen seen;
    if (Meet(asked, slot, seen) != Met::kOwn) return;
    const WordUndone step = sluice::UndoWord(asked.limit, seen.word, receipt, units, asked.now,
                                             undone.load(std::memory_order_acquire) - added);
    if (step.next == seen.word) return;
    // Counted before the word moves, so that nobody sees the word moved and the count not. The
    // lock keeps other undos of the stripe out meanwhile.
    if (step.ticks > added) {
      undone.fetch_add(step.ticks - added, std::memory_order_acq_rel);
      added = step.ticks;
    }
    if (slot.Replace(seen.word, step.next)) return;
  }
}

void KeyClaims::UndoBlocks(const Asked& asked, const Receipt& receipt, std::uint64_t units) {
  for (unsigned turn = 0;; ++turn) {
    Slot slot;
    Seen seen;
    if (Meet(asked, slot, seen) != Met::kOwn) return;
    if (slot.Take(seen)) {
      BlockNumber head = HeadOfWord(seen.word);
      eviction_.outside().Undo(asked.limit, head, receipt, units, asked.now);
      slot.Publish({.tag = seen.tag, .word = WordOfHead(head)});
      return;
    }
    WaitTurn(turn);
  }
}

}  // namespace sluice::memory
