// How a state moves from one limit to another.

#include <algorithm>

#include "sluice/algorithm/packed.h"
#include "sluice/algorithm/state.h"
#include "sluice/store/memory/internal/key_claims.h"

namespace sluice::memory {

// The state as it is met, in a slot that is taken.
struct KeyClaims::Old {
  Old(const LimitRegistry& limits, const Asked& asked, Seen met)
      : seen(met),
        id(ClassOf(met.tag)),
        limit(limits.limit(id)),
        outside(limits.traits(id).keeper != Keeper::kWord),
        now(NowOf(limits.traits(id), limit, asked.place.fingerprint, asked.common_now)) {}

  Seen seen;
  LimitId id;
  const Limit& limit;
  bool outside;
  Now now;  // the key's own under the old limit
  std::uint64_t debt = 0;
};

std::optional<KeyClaims::Answer> KeyClaims::Convert(const Asked& asked, const Slot& slot,
                                                    const Seen& seen) {
  if (!slot.Take(seen)) return std::nullopt;
  Old old(limits_, asked, seen);
  OutsideStates& states = eviction_.outside();
  if (old.outside && OutsideStates::SameShape(old.limit, asked.limit)) {
    counters_.Add(Count::kConversions);
    slot.Publish({.tag = asked.place.fingerprint | asked.id, .word = seen.word});
    return std::nullopt;
  }
  old.debt = old.outside ? states.Debt(old.limit, HeadOfWord(seen.word), old.now)
                         : DebtOfWord(old.limit, seen.word, old.now);
  return asked.traits.keeper == Keeper::kWord ? ConvertToWord(asked, slot, old)
                                              : ConvertToBlocks(asked, slot, old);
}

void KeyClaims::Become(const Asked& asked, const Slot& slot, const Old& old, std::uint64_t word) {
  if (old.outside) eviction_.outside().Free(HeadOfWord(old.seen.word));
  counters_.Add(Count::kConversions);
  slot.Publish({.tag = asked.place.fingerprint | asked.id, .word = word});
}

std::optional<KeyClaims::Answer> KeyClaims::ConvertToWord(const Asked& asked, const Slot& slot,
                                                          const Old& old) {
  std::uint64_t word = 0;
  if (!old.outside && old.now.wall == asked.now.wall) {
    word = ConvertWord(old.limit, old.seen.word, asked.limit, asked.now);
  } else if (old.debt > 0) {
    word = WordOwing(asked.limit, std::min(old.debt, CapacityOf(asked.limit)), asked.now);
  }
  const bool loses = DebtOfWord(asked.limit, word, asked.now) < old.debt;
  if (loses && limits_.Settling(old.id, asked.id, asked.now)) {
    const Step<std::uint64_t> step = DecideWord(asked.limit, word, asked.cost, asked.now);
    if (asked.how != How::kCharge || step.receipt.units == 0) {
      slot.Publish(old.seen);
      return Answer{step.decision, {}};
    }
  }
  Become(asked, slot, old, word);
  return std::nullopt;
}

std::optional<KeyClaims::Answer> KeyClaims::ConvertToBlocks(const Asked& asked, const Slot& slot,
                                                            const Old& old) {
  OutsideStates& states = eviction_.outside();
  const bool both_small = old.outside && old.limit.index() == asked.limit.index() &&
                          HasSmallState(asked.limit) && old.now.wall == asked.now.wall;
  BlockNumber head =
      both_small
          ? states.CreateConverted(old.limit, HeadOfWord(old.seen.word), asked.limit, asked.now)
          : states.CreateOwing(asked.limit, std::min(old.debt, CapacityOf(asked.limit)), asked.now);
  if (head == 0) {
    // No block for it: forgotten, as an evicted key is.
    if (old.outside) states.Free(HeadOfWord(old.seen.word));
    counters_.Add(Count::kEvicted);
    slot.Publish({});
    return std::nullopt;
  }
  const bool loses = states.Debt(asked.limit, head, asked.now) < old.debt;
  if (loses && limits_.Settling(old.id, asked.id, asked.now)) {
    const OutsideAnswer answer = states.Decide(asked.limit, head, asked.cost, asked.now);
    if (asked.how != How::kCharge || !answer.decision.allowed() || asked.cost == 0) {
      states.Free(head);
      slot.Publish(old.seen);
      return Answer{answer.decision, {}};
    }
  }
  eviction_.SetOwner(head, slot);
  Become(asked, slot, old, WordOfHead(head));
  return std::nullopt;
}

}  // namespace sluice::memory
