#include "sluice/store/redis/internal/give_back.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "sluice/base/random.h"
#include "sluice/base/steady_now.h"
#include "sluice/net/redis_reply.h"
#include "sluice/store/redis/internal/asked_group.h"
#include "sluice/store/redis/internal/redirects.h"
#include "sluice/store/redis/internal/redis_limit.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostInCall = ScriptCall::kMostGroups;
// So that a long queue does not fill the connection's.
constexpr std::size_t kMostCalls = 8;
// In a cluster a call has one slot's, often a single one; and among so many that wait those that
// fit are looked for.
constexpr std::size_t kMostCallsOfSlots = 64;
constexpr std::size_t kLookAt = 256;
// A server that is silent for that long is left before: so the answer comes, or the connection
// ends.
constexpr Duration kDeadline = 10s;
// What rests is looked at in rounds of so long, or somewhat longer.
constexpr Duration kRound = 100ms;
constexpr int kMostRounds = 8;
constexpr Duration kMakesRoomEvery = 1s;
constexpr int kRoundsUntilSecondLook = 10;
// One of which nobody knows whether it was done. A server may read late what was sent on a
// connection that is gone, but hardly later than that; its mark lives longer than both.
constexpr Duration kTryAgainFor = 60s;
constexpr Duration kMarkLives = kTryAgainFor + 2 * kDeadline;

bool IsSlot(const RemoteLimit& limit) {
  return std::holds_alternative<concurrency::Limit>(limit.limit());
}

// At least as long as a charge of now is owed at all.
Duration WorthOf(const Limit& limit) {
  if (const auto* slots = std::get_if<concurrency::Limit>(&limit)) {
    return slots->slot_ttl > 0s ? slots->slot_ttl : ScriptLimit::kSlotBound;
  }
  return LifetimeOf(limit) + (CanLease(limit) ? LongestLease(limit) : 0s);
}

}  // namespace

GiveBack::GiveBack(net::EventLoop& loop, const StoreParts& parts, std::size_t max_waiting,
                   bool marks)
    : parts_(parts),
      max_waiting_(max_waiting),
      marks_(marks),
      node_(RandomNumber()),
      round_(*this, loop.deadlines()) {}

GiveBack::~GiveBack() {
  const std::uint64_t lost = all_owed_.size() - free_owed_.size();
  parts_.counters.undos_waiting.Set(parts_.counters.undos_waiting.value() - lost);
}

// Null: there are too many.
GiveBack::Owed* GiveBack::Take(const RemoteLimit& limit) {
  const std::size_t most = IsSlot(limit) ? max_waiting_ : max_waiting_ / 2;
  const auto used = [&] { return all_owed_.size() - free_owed_.size(); };
  if (used() >= most) MakeRoom();
  if (used() >= most) {
    parts_.counters.undos_dropped.Add();
    return nullptr;
  }
  if (free_owed_.empty()) {
    all_owed_.push_back(std::make_unique<Owed>());
    free_owed_.push_back(all_owed_.back().get());
  }
  Owed* owed = free_owed_.back();
  free_owed_.pop_back();
  owed->key.clear();
  owed->limit = limit.shared_from_this();
  owed->tries = 0;
  owed->until = Time::max();
  owed->look_again = false;
  owed->mark.clear();
  owed->unknown = false;
  owed->hops = 0;
  owed->alone = owed->asking = false;
  parts_.counters.undos_waiting.Add(1);
  return owed;
}

GiveBack::Owed* GiveBack::TakeFor(const RemoteClaim& claim) {
  Owed* owed = Take(*claim.limit);
  if (owed == nullptr) return nullptr;
  const KeyKind kind = KindOf(claim.limit->limit(), claim.block);
  owed->phase_bits = AppendKeyName(parts_.keys, kind, claim.key, &owed->key);
  owed->slot = SlotOf(owed->key);
  owed->receipt = claim.receipt;
  return owed;
}

void GiveBack::Undo(const RemoteClaim& claim, std::uint64_t units) {
  if (claim.receipt.units == 0 || units == 0) return;
  Owed* owed = TakeFor(claim);
  if (owed == nullptr) return;
  owed->units = units;
  if (marks_ && !IsSlot(*owed->limit)) AppendMarkName(owed->key, node_, next_mark_++, &owed->mark);
  waiting_.push_back(owed);
  parts_.turn.Ask();
}

void GiveBack::Release(std::string_view key, const RemoteLimit& limit, std::uint64_t slot,
                       std::uint64_t units, bool lost) {
  Owed* owed = Take(limit);
  if (owed == nullptr) return;
  owed->key = key;
  owed->slot = SlotOf(key);
  owed->phase_bits = 0;
  owed->receipt = {.before = static_cast<std::int64_t>(slot), .units = units};
  owed->units = units;
  owed->look_again = lost;
  waiting_.push_back(owed);
  parts_.turn.Ask();
}

void GiveBack::Renew(const RemoteClaim& claim) {
  if (claim.receipt.units == 0 || !IsSlot(*claim.limit)) return;
  Owed* owed = TakeFor(claim);
  if (owed == nullptr) return;
  renewing_.push_back(owed);
  parts_.turn.Ask();
}

void GiveBack::Send() {
  if (waiting_.empty() && renewing_.empty()) return;
  const Time now = SteadyNow();
  if (!parts_.link.usable()) {
    for (Owed* owed : waiting_) owed->until = WorthUntil(*owed, now);
    if (!parts_.link.gone()) return;
    for (Owed* owed : std::exchange(renewing_, {})) Recycle(*owed);
    return;
  }
  // First, since one that came behind its slot's release would take it again.
  while (!renewing_.empty() && SendRenewals(now)) {
  }
  while (!waiting_.empty() && calls_on_their_way_ < most_calls() && SendUndos(now)) {
  }
}

// With up to as many of them as go into one.
GiveBack::Call& GiveBack::NewCall(std::vector<Owed*>* from) {
  if (free_calls_.empty()) {
    all_calls_.push_back(std::make_unique<Call>());
    free_calls_.push_back(all_calls_.back().get());
  }
  Call& call = *free_calls_.back();
  free_calls_.pop_back();
  const Owed& first = *from->front();
  const std::size_t most = parts_.redirects == nullptr ? kMostInCall : kLookAt;
  std::size_t kept = 0;
  std::size_t seen = 0;
  for (; seen < std::min(most, from->size()) && call.owed.size() < kMostInCall; ++seen) {
    Owed* const owed = (*from)[seen];
    if (call.owed.empty() || FitInCall(first, *owed)) {
      call.owed.push_back(owed);
    } else {
      (*from)[kept++] = owed;
    }
  }
  from->erase(from->begin() + static_cast<std::ptrdiff_t>(kept),
              from->begin() + static_cast<std::ptrdiff_t>(seen));
  return call;
}

bool GiveBack::FitInCall(const Owed& first, const Owed& next) const {
  if (parts_.redirects == nullptr) return true;
  return first.slot == next.slot && !first.alone && !next.alone;
}

std::size_t GiveBack::most_calls() const {
  return parts_.redirects == nullptr ? kMostCalls : kMostCallsOfSlots;
}

// False: not now.
bool GiveBack::SendUndos(Time now) {
  Call& call = NewCall(&waiting_);
  std::erase_if(call.owed, [&](Owed* owed) {
    if (owed->until > now) return false;
    Expire(*owed);
    return true;
  });
  for (Owed* owed : call.owed) {
    if (!owed->unknown) owed->sent = now;
    call.undos.push_back({.key = owed->key,
                          .limit = &RedisLimit::Of(*owed->limit).script(),
                          .phase_bits = owed->phase_bits,
                          .receipt = owed->receipt,
                          .units = owed->units,
                          .mark = owed->mark,
                          .mark_life = std::min(WorthOf(owed->limit->limit()), kMarkLives)});
  }
  if (call.owed.empty()) {
    Recycle(call);
    return true;
  }
  const bool asking = call.owed.front()->asking;
  bytes_.assign(asking ? kAskingCommand : "");
  parts_.script.AppendUndo(parts_.link.sha(), call.undos, parts_.clock.Read(), &bytes_);
  const absl::Status sent = parts_.link.Send(
      bytes_, now + kDeadline,
      [this, &call](const absl::StatusOr<net::RedisReply>& reply) { OnUndone(call, reply); },
      asking ? 2 : 1);
  if (sent.ok()) {
    ++calls_on_their_way_;
    return true;
  }
  for (Owed* owed : call.owed) Retry(*owed);
  Recycle(call);
  return false;
}

void GiveBack::OnUndone(Call& call, const absl::StatusOr<net::RedisReply>& reply) {
  --calls_on_their_way_;
  if (!reply.ok()) {
    for (Owed* owed : call.owed) NobodyKnows(*owed);
    return Recycle(call);
  }
  if (FollowAll(call, *reply, /*renewing=*/false)) return Recycle(call);
  const absl::Status status = parts_.script.ReadUndo(*reply, call.undos, parts_.clock.Read());
  if (status.ok()) {
    if (marks_) DeleteMarks(call);
    for (std::size_t i = 0; i < call.owed.size(); ++i) Settle(*call.owed[i], call.undos[i]);
  } else if (absl::IsFailedPrecondition(status)) {
    parts_.link.OnError(reply->error());
    parts_.link.LoadAgain();
    waiting_.insert(waiting_.begin(), call.owed.begin(), call.owed.end());
  } else if (absl::IsUnavailable(status)) {
    parts_.link.OnError(reply->error());
    for (Owed* owed : call.owed) Retry(*owed);
  } else {
    for (Owed* owed : call.owed) NobodyKnows(*owed);
  }
  Recycle(call);
  if (!waiting_.empty()) parts_.turn.Ask();
}

// Of what was done and can't be done again. Where that fails they end by themselves.
void GiveBack::DeleteMarks(const Call& call) {
  words_.assign(1, "DEL");
  for (std::size_t i = 0; i < call.owed.size(); ++i) {
    const Owed& owed = *call.owed[i];
    if (!owed.mark.empty() && !owed.unknown && call.undos[i].given_back) {
      words_.push_back(owed.mark);
    }
  }
  if (words_.size() == 1) return;
  bytes_.clear();
  net::AppendRedisCommand(words_, &bytes_);
  (void)parts_.link.Send(bytes_, SteadyNow() + kDeadline,
                         [](const absl::StatusOr<net::RedisReply>&) {});
}

// The server did nothing of it. False: that is not what it says.
bool GiveBack::FollowAll(const Call& call, const net::RedisReply& reply, bool renewing) {
  if (parts_.redirects == nullptr || !reply.is_error()) return false;
  const auto to = ReadRedirect(reply.error());
  if (!to) return false;
  for (Owed* owed : call.owed) Follow(*owed, *to, renewing);
  if (!waiting_.empty()) parts_.turn.Ask();
  return true;
}

void GiveBack::Follow(Owed& owed, const Redirect& to, bool renewing) {
  // A slot that moves takes no call for two keys of which one is missing, and the mark is.
  if (owed.alone && to.kind == Redirect::Kind::kTryAgain && !owed.unknown) owed.mark.clear();
  owed.alone = true;
  owed.asking = to.kind == Redirect::Kind::kAsk;
  GiveBack* const next = parts_.redirects->Follow(to);
  if (++owed.hops > Redirects::kMost || next == nullptr) {
    owed.hops = 0;
    return renewing ? Recycle(owed) : Retry(owed);
  }
  if (next == this) return (renewing ? renewing_ : waiting_).push_back(&owed);
  next->Adopt(owed, renewing);
  Recycle(owed);
}

void GiveBack::Adopt(const Owed& from, bool renewing) {
  Owed* const owed = Take(*from.limit);
  if (owed == nullptr) return;
  *owed = from;
  (renewing ? renewing_ : waiting_).push_back(owed);
  parts_.turn.Ask();
}

void GiveBack::HandOver() {
  for (std::vector<Owed*>* list : {&waiting_, &resting_}) {
    std::erase_if(*list, [&](Owed* owed) {
      GiveBack* const owner = parts_.redirects->OwnerOf(owed->slot);
      if (owner == nullptr || owner == this) return false;
      owed->asking = false;
      owner->Adopt(*owed, /*renewing=*/false);
      Recycle(*owed);
      return true;
    });
  }
}

void GiveBack::Settle(Owed& owed, const ScriptUndo& answered) {
  if (answered.status.ok()) {
    if (owed.look_again && !answered.given_back) {
      owed.look_again = false;
      return Rest(owed, kRoundsUntilSecondLook);
    }
    parts_.counters.undos.Add();
    return Recycle(owed);
  }
  parts_.link.OnError({answered.status.message().data(), answered.status.message().size()});
  if (absl::IsUnavailable(answered.status)) return Retry(owed);
  Drop(owed);  // what is there is no state of ours
}

void GiveBack::NobodyKnows(Owed& owed) {
  if (IsSlot(*owed.limit)) {
    owed.look_again = true;
    return Retry(owed);
  }
  if (owed.mark.empty()) return Drop(owed);
  if (!std::exchange(owed.unknown, true)) {
    owed.until = std::min(WorthUntil(owed, SteadyNow()), owed.sent + kTryAgainFor);
  }
  Retry(owed);
}

Time GiveBack::WorthUntil(const Owed& owed, Time now) {
  return owed.until == Time::max() ? now + WorthOf(owed.limit->limit()) : owed.until;
}

void GiveBack::Retry(Owed& owed) {
  Rest(owed, std::min(1 << std::min(owed.tries++, 5), kMostRounds));
}

void GiveBack::Rest(Owed& owed, int rounds) {
  owed.until = WorthUntil(owed, SteadyNow());
  owed.rests = rounds;
  if (resting_.empty()) round_.Set(kRound);
  resting_.push_back(&owed);
}

void GiveBack::OnRound() {
  std::erase_if(resting_, [&](Owed* owed) {
    if (--owed->rests > 0) return false;
    waiting_.push_back(owed);
    return true;
  });
  DropWorthless(SteadyNow());
  if (!resting_.empty()) round_.Set(kRound);
  if (!waiting_.empty()) parts_.turn.Ask();
}

// All of them have to be looked at: not for each that finds no room.
void GiveBack::MakeRoom() {
  const Time now = SteadyNow();
  if (now < makes_room_at_) return;
  makes_room_at_ = now + kMakesRoomEvery;
  DropWorthless(now);
}

void GiveBack::DropWorthless(Time now) {
  for (std::vector<Owed*>* list : {&waiting_, &resting_}) {
    std::erase_if(*list, [&](Owed* owed) {
      if (owed->until > now) return false;
      Expire(*owed);
      return true;
    });
  }
}

bool GiveBack::SendRenewals(Time now) {
  Call& call = NewCall(&renewing_);
  for (const Owed* owed : call.owed) {
    call.renewals.push_back({.key = owed->key,
                             .limit = &RedisLimit::Of(*owed->limit).script(),
                             .receipt = owed->receipt});
  }
  const bool asking = call.owed.front()->asking;
  bytes_.assign(asking ? kAskingCommand : "");
  parts_.script.AppendRenew(parts_.link.sha(), call.renewals, &bytes_);
  const absl::Status sent = parts_.link.Send(
      bytes_, now + kDeadline,
      [this, &call](const absl::StatusOr<net::RedisReply>& reply) { OnRenewed(call, reply); },
      asking ? 2 : 1);
  if (sent.ok()) {
    parts_.counters.renewals.Add(call.owed.size());
    return true;
  }
  for (Owed* owed : call.owed) Recycle(*owed);
  Recycle(call);
  return false;
}

void GiveBack::OnRenewed(Call& call, const absl::StatusOr<net::RedisReply>& reply) {
  if (reply.ok() && FollowAll(call, *reply, /*renewing=*/true)) return Recycle(call);
  if (reply.ok()) {
    const absl::Status status = parts_.script.ReadRenew(*reply, call.renewals, parts_.clock.Read());
    if (reply->is_error()) parts_.link.OnError(reply->error());
    if (absl::IsFailedPrecondition(status)) parts_.link.LoadAgain();
  }
  for (Owed* owed : call.owed) Recycle(*owed);
  Recycle(call);
}

// It is worth nothing any more, or what became of it is unknown for too long.
void GiveBack::Expire(Owed& owed) {
  if (owed.unknown) return Drop(owed);
  parts_.counters.undos.Add();
  Recycle(owed);
}

void GiveBack::Drop(Owed& owed) {
  parts_.counters.undos_dropped.Add();
  Recycle(owed);
}

void GiveBack::Recycle(Owed& owed) {
  owed.limit.reset();
  free_owed_.push_back(&owed);
  parts_.counters.undos_waiting.Set(parts_.counters.undos_waiting.value() - 1);
}

void GiveBack::Recycle(Call& call) {
  call.owed.clear();
  call.undos.clear();
  call.renewals.clear();
  free_calls_.push_back(&call);
}

}  // namespace sluice::redis
