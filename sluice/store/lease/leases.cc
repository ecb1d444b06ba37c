#include "sluice/store/lease/leases.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "sluice/base/steady_now.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;

// By how much a clock may be slower than it should.
constexpr int kPace = 1000;

// For how long a key rests of which the store granted nothing.
constexpr Duration kShortestRest = milliseconds{1};

// For so long an answer is waited for, or for as long as the lease lasts: it may come too late for
// that, but what it took has to be known to go back, and how long it took to ask for a longer one.
constexpr Duration kPatience = milliseconds{100};

// So that no sum of what is wanted overflows.
constexpr std::uint64_t kMostWanted = std::uint64_t{1} << 60;

// What nobody wanted for as long goes back before its end.
Duration IdleAfter(Duration length) { return std::max<Duration>(length / 4, milliseconds{5}); }

// A lease lasts for so many times as long as the store takes to answer, if it may.
constexpr int kAnswersInALease = 8;

// part / whole * units, for a part of at most several wholes.
std::uint64_t Share(std::uint64_t units, Duration part, Duration whole) {
  const double share = static_cast<double>(part.count()) / static_cast<double>(whole.count());
  return static_cast<std::uint64_t>(static_cast<double>(units) * share);
}

}  // namespace

Leases::Leases(RemoteStore& store, const Clock& clock, LeaseOptions options)
    : store_(store),
      clock_(clock),
      wake_(std::move(options.wake)),
      mask_(std::bit_ceil(std::max(options.keys, kSetSize)) / kSetSize - 1),
      entries_((mask_ + 1) * kSetSize) {
  holding_.reserve(entries_.size());
}

Leases::Entry* Leases::SetOf(const Name& name) {
  // Keys are pseudo-random; limits of one key are spread by an odd factor.
  const std::uint64_t mixed = name.key.lo + name.limit * 0x9e3779b97f4a7c15;
  return &entries_[(mixed & mask_) * kSetSize];
}

Leases::Entry* Leases::Find(const Name& name) {
  Entry* const set = SetOf(name);
  for (std::size_t i = 0; i < kSetSize; ++i) {
    if (set[i].used && set[i].name == name) return &set[i];
  }
  return nullptr;
}

// Null: of all others that could give way something is held.
Leases::Entry* Leases::FindOrPlace(const Name& name, Time now) {
  if (Entry* const found = Find(name)) return found;
  Entry* const set = SetOf(name);
  Entry* place = nullptr;
  for (Entry* entry = set; entry != set + kSetSize; ++entry) {
    if (entry->asking || entry->holds()) continue;
    if (place == nullptr || !entry->used || (place->used && entry->wanted < place->wanted)) {
      place = entry;
    }
  }
  if (place == nullptr) return nullptr;
  place->name = name;
  place->begun = now;
  place->units = place->requests = place->units_before = 0;
  place->rests_until = place->remained_at = Time::min();
  place->used = true;
  return place;
}

// How long a lease lasts that is asked for now.
Duration Leases::LengthOf(const LeaseTerms& terms) const {
  return std::clamp(kAnswersInALease * answers_take_, terms.size.length, terms.size.longest);
}

void Leases::CountDemand(Entry& entry, Duration length, std::uint64_t cost, Time now) {
  const Duration passed = now - entry.begun;
  if (passed >= length) {
    entry.units_before = passed < 2 * length ? entry.units : 0;
    entry.units = entry.requests = 0;
    entry.begun = now;
  }
  entry.units = std::min(entry.units + cost, kMostWanted);
  ++entry.requests;
  entry.wanted = now;
}

std::uint64_t Leases::MeanCost(const Entry& entry) {
  return entry.requests > 0 ? entry.units / entry.requests : 0;
}

// Of what is held the lease that ends first, of those that have enough.
Leases::Held* Leases::Usable(Entry& entry, std::uint64_t cost, Time now) {
  while (entry.holds() && now >= entry.held[0].until) DropFirst(entry);
  // A rest that is too small for most requests would keep the next lease from being asked for.
  const std::uint64_t rest = std::max(kLeastLeased, MeanCost(entry));
  if (entry.held[1].id != 0 && entry.held[0].left < std::min(cost, rest)) DropFirst(entry);
  for (Held& held : entry.held) {
    if (held.left >= cost) return &held;
  }
  return nullptr;
}

std::optional<Leases::Taken> Leases::Take(const Name& name, std::string_view key,
                                          const LeaseTerms& terms, std::uint64_t cost, Time now) {
  // What no lease can have is no demand for one.
  if (closed_ || cost > terms.size.most) return std::nullopt;
  Entry* const entry = FindOrPlace(name, now);
  if (entry == nullptr) return std::nullopt;
  const Duration length = LengthOf(terms);
  CountDemand(*entry, length, cost, now);
  std::optional<Taken> taken;
  if (Held* const held = Usable(*entry, cost, now)) {
    taken = {.lease = held->id, .decision = held->told, .receipt = held->receipt};
    taken->decision.remaining += held->left - cost;
    taken->decision.reset_after =
        std::max(taken->decision.reset_after - (now - held->since), Duration{0});
    taken->receipt.units = cost;
    held->left -= cost;
    counters_.taken.Add(cost);
  }
  if (!entry->asking && entry->held[1].id == 0) AskWhereWorthIt(*entry, key, terms, length, now);
  return taken;
}

// How many units will be wanted within the next `length`, by what was wanted lately.
std::uint64_t Leases::Wanted(const Entry& entry, Duration length, Time now) {
  const Duration passed = now - entry.begun;
  if (passed >= length / 4) return Share(entry.units, length, passed);
  // Too short to tell much: a key that was not wanted before gets twice what it took so far.
  return std::max(entry.units_before, 2 * entry.units);
}

// The most that one lease may have.
std::uint64_t Leases::Ceiling(const Entry& entry, const LeaseTerms& terms, Duration length,
                              Time now) {
  const Limit& limit = terms.limit->limit();
  const bool known = entry.remained_at != Time::min() && now - entry.remained_at < length;
  const std::uint64_t quarter =
      known ? entry.remained / 4 : std::max(CapacityOf(limit) / 4, kLeastLeased);
  return std::min({terms.size.most, MostLeased(limit, length), quarter});
}

void Leases::AskWhereWorthIt(Entry& entry, std::string_view key, const LeaseTerms& terms,
                             Duration length, Time now) {
  if (now < entry.rests_until) return;
  const std::uint64_t wanted = Wanted(entry, length, now);
  std::uint64_t spendable = 0;  // of what is held, until that ends
  if (entry.holds()) {
    const Duration lasts = entry.held[0].until - now;
    spendable = std::min(entry.held[0].left, Share(wanted, lasts, length));
    if (spendable >= wanted / 2) return;
  }
  const std::uint64_t units = std::min(Ceiling(entry, terms, length, now),
                                       wanted + wanted / 8 - std::min(spendable, wanted));
  // As many as kLeastLeased requests take, at what they took so far.
  if (units < kLeastLeased || units / kLeastLeased < MeanCost(entry)) return;
  Ask(entry, key, terms, length, units, now);
}

void Leases::Ask(Entry& entry, std::string_view key, const LeaseTerms& terms, Duration length,
                 std::uint64_t units, Time now) {
  entry.key.assign(key);
  entry.terms = terms;
  entry.asked_at = now;
  entry.claim = {.key = entry.key,
                 .limit = terms.limit.get(),
                 .cost = units,
                 .lease = length,
                 .decision = {},
                 .receipt = {}};
  entry.group = {.claims = std::span(&entry.claim, 1)};
  const Duration patience = std::max(length, kPatience);
  // Two pointers: as much as a callback holds without allocating.
  const absl::Status sent =
      store_.Apply(entry.group, SteadyNow() + patience,
                   [this, &entry](const absl::Status& status) { OnAnswer(entry, status); });
  if (sent.ok()) {
    entry.asking = true;
    counters_.asking.Add();
  } else {
    counters_.unanswered.Add();
    entry.rests_until = now + length;
  }
}

void Leases::OnAnswer(Entry& entry, const absl::Status& status) {
  const Time now = clock_.Read().steady;
  entry.asking = false;
  counters_.asking.Set(counters_.asking.value() - 1);
  const bool stale = std::exchange(entry.stale, false);
  if (!status.ok()) {
    counters_.unanswered.Add();
    entry.rests_until = now + entry.claim.lease;
    return;
  }
  answers_take_ = std::max(now - entry.asked_at, answers_take_ - answers_take_ / 4);
  const Decision& told = entry.claim.decision;
  entry.remained = told.remaining;
  entry.remained_at = now;
  if (entry.claim.receipt.units == 0) {
    counters_.denied.Add();
    const Duration rest = std::min(told.retry_after, entry.claim.lease);
    entry.rests_until = now + std::max(rest, kShortestRest);
    return;
  }
  counters_.granted.Add();
  counters_.units.Add(entry.claim.receipt.units);
  Held granted{.id = ++last_id_,
               .left = entry.claim.receipt.units,
               .since = entry.asked_at,
               .until = entry.asked_at + entry.claim.good_for - entry.claim.good_for / kPace,
               .receipt = entry.claim.receipt,
               .told = told};
  if (stale || closed_) return Return(entry, granted);
  if (!entry.holds()) {
    holding_.push_back(&entry);
    counters_.keys.Set(holding_.size());
    entry.held[0] = granted;
  } else {
    entry.held[1] = granted;
    if (entry.held[1].until < entry.held[0].until) std::swap(entry.held[0], entry.held[1]);
  }
  WakeAt(EndOf(entry));
}

// The first lease is over.
void Leases::DropFirst(Entry& entry) {
  if (entry.held[0].left > 0) Return(entry, entry.held[0]);
  entry.held[0] = std::exchange(entry.held[1], Held{});
  if (entry.holds()) return;
  std::erase(holding_, &entry);
  counters_.keys.Set(holding_.size());
}

void Leases::Return(Entry& entry, const Held& held) {
  ReturnToStore(entry.key, entry.terms, held.receipt, held.left);
}

void Leases::ReturnToStore(std::string_view key, const LeaseTerms& terms, const Receipt& receipt,
                           std::uint64_t units) {
  counters_.returned.Add(units);
  store_.Undo({.key = key,
               .limit = terms.limit.get(),
               .cost = receipt.units,
               .lease = terms.size.length,  // that it is one
               .decision = {},
               .receipt = receipt},
              units);
}

void Leases::PutBack(const Name& name, std::string_view key, const LeaseTerms& terms,
                     std::uint64_t lease, const Receipt& receipt) {
  if (receipt.units == 0) return;
  counters_.put_back.Add(receipt.units);
  if (Entry* const entry = Find(name)) {
    entry->units -= std::min(entry->units, receipt.units);  // it was no demand
    entry->requests -= std::min<std::uint64_t>(entry->requests, 1);
    for (Held& held : entry->held) {
      if (held.id != lease) continue;
      held.left += receipt.units;
      return;
    }
  }
  ReturnToStore(key, terms, receipt, receipt.units);
}

// When something of what an entry holds is to go back.
Time Leases::EndOf(const Entry& entry) {
  return std::min(entry.held[0].until, entry.wanted + IdleAfter(entry.claim.lease));
}

void Leases::OnTime(Time now) {
  wakes_at_ = Time::max();
  Time next = Time::max();
  for (std::size_t i = 0; i < holding_.size();) {
    Entry& entry = *holding_[i];
    const bool idle = now >= entry.wanted + IdleAfter(entry.claim.lease);
    while (entry.holds() && (idle || now >= entry.held[0].until)) DropFirst(entry);
    if (!entry.holds()) continue;  // another stands in its place now
    next = std::min(next, EndOf(entry));
    ++i;
  }
  if (next != Time::max()) WakeAt(next);
}

void Leases::WakeAt(Time at) {
  if (!wake_ || at >= wakes_at_) return;
  wakes_at_ = at;
  wake_(at);
}

void Leases::ReturnAll() {
  while (!holding_.empty()) DropFirst(*holding_.back());
  for (Entry& entry : entries_) entry.stale = entry.asking;
}

void Leases::Close() {
  closed_ = true;
  ReturnAll();
}

}  // namespace sluice
