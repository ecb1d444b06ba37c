#include "sluice/store/redis/internal/call_queue.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sluice/base/steady_now.h"
#include "sluice/store/redis/internal/redirects.h"

namespace sluice::redis {

CallQueue::CallQueue(const StoreParts& parts, Guard& guard, GiveBack& give_back)
    : parts_(parts), guard_(guard), give_back_(give_back) {}

absl::Status CallQueue::Enter(AskedGroup& asked) {
  if (absl::Status refusal = guard_.Admit(&asked.ticket); !refusal.ok()) return refusal;
  asked.holder = this;
  asked.sent_here = false;
  waiting_.push_back(&asked);
  parts_.turn.Ask();
  return absl::OkStatus();
}

void CallQueue::Send() {
  if (waiting_.empty()) return;
  const Time now = SteadyNow();
  parts_.groups.EndLate(now);  // nothing that is late is sent
  leaving_.swap(waiting_);
  if (parts_.redirects != nullptr) {
    std::ranges::sort(leaving_, [](const AskedGroup* a, const AskedGroup* b) {
      return std::tie(a->slot, a->since) < std::tie(b->slot, b->since);
    });
  }
  for (std::size_t first = 0; first < leaving_.size();) {
    const std::size_t count = FitsInCall(first);
    SendCall(first, count, now);
    first += count;
  }
  leaving_.clear();
}

// From `first` on.
std::size_t CallQueue::FitsInCall(std::size_t first) const {
  const std::size_t most = std::min(ScriptCall::kMostGroups, leaving_.size() - first);
  if (leaving_[first]->alone) return 1;
  std::size_t count = 1;
  while (count < most && leaving_[first + count]->slot == leaving_[first]->slot &&
         !leaving_[first + count]->alone) {
    ++count;
  }
  return count;
}

void CallQueue::SendCall(std::size_t first, std::size_t count, Time now) {
  if (free_calls_.empty()) {
    all_calls_.push_back(std::make_unique<Call>());
    free_calls_.push_back(all_calls_.back().get());
  }
  Call& call = *free_calls_.back();
  free_calls_.pop_back();
  Time latest = Time::min();
  for (std::size_t i = first; i < first + count; ++i) {
    AskedGroup& asked = *leaving_[i];
    call.asked.push_back(&asked);
    call.groups.push_back({.claims = asked.claims});
    latest = std::max(latest, asked.deadline);
    if (asked.turns++ == 0) {
      parts_.counters.groups.Add();
    } else {
      parts_.counters.again.Add();
    }
    asked.sent_here = asked.on_its_way = true;
  }
  const bool asking = call.asked.front()->asking;
  bytes_.assign(asking ? kAskingCommand : "");
  parts_.script.AppendDecide(parts_.link.sha(), call.groups, parts_.clock.Read(), &bytes_);
  const absl::Status sent = parts_.link.Send(
      bytes_, latest,
      [this, &call](const absl::StatusOr<net::RedisReply>& reply) { OnReply(call, reply); },
      asking ? 2 : 1);
  if (sent.ok()) return parts_.counters.calls.Add();
  for (AskedGroup* asked : call.asked) {
    asked->on_its_way = false;
    parts_.counters.refused.Add();
    End(*asked, sent, Server::kSilent, now);
  }
  call.asked.clear();
  call.groups.clear();
  free_calls_.push_back(&call);
}

void CallQueue::OnReply(Call& call, const absl::StatusOr<net::RedisReply>& reply) {
  const Time now = SteadyNow();
  for (AskedGroup* asked : call.asked) asked->on_its_way = false;
  if (reply.ok()) {
    OnAnswers(call, *reply, now);
  } else {
    const absl::Status& why = WhyOf(reply.status());
    // What lost the connection with its answer may still be read from it, after what we send next.
    const bool lost = absl::IsUnavailable(why);
    for (AskedGroup* asked : call.asked) EndUnknown(*asked, why, Server::kSilent, lost, now);
  }
  call.asked.clear();
  call.groups.clear();
  free_calls_.push_back(&call);
}

// In our words, if it is our affair.
const absl::Status& CallQueue::WhyOf(const absl::Status& status) const {
  // The connection's timer and ours are due at the same instant.
  if (absl::IsDeadlineExceeded(status)) return parts_.groups.late();
  return absl::IsCancelled(status) ? parts_.link.why() : status;
}

void CallQueue::OnAnswers(Call& call, const net::RedisReply& reply, Time now) {
  if (parts_.redirects != nullptr && reply.is_error()) {
    if (const auto to = ReadRedirect(reply.error())) return Follow(call, *to, now);
  }
  const std::uint64_t disagreements = parts_.script.disagreements();
  const absl::Status status = parts_.script.ReadDecide(reply, call.groups, parts_.clock.Read());
  parts_.counters.disagreements.Add(parts_.script.disagreements() - disagreements);
  if (status.ok()) {
    for (std::size_t i = 0; i < call.asked.size(); ++i) {
      Settle(*call.asked[i], call.groups[i], now);
    }
    return;
  }
  if (reply.is_error()) parts_.link.OnError(reply.error());
  if (absl::IsFailedPrecondition(status)) {
    parts_.link.LoadAgain();
    for (AskedGroup* asked : call.asked) SendAgain(*asked, now);
    return;
  }
  for (AskedGroup* asked : call.asked) {
    if (absl::IsDataLoss(status)) {
      EndUnknown(*asked, status, Server::kAnswered, /*lost=*/false, now);
    } else {
      End(*asked, status, Server::kRefused, now);
    }
  }
}

void CallQueue::Settle(AskedGroup& asked, ScriptGroup& answered, Time now) {
  switch (answered.state) {
    case ScriptGroup::State::kDone:
      for (const ScriptClaim& claim : asked.claims) {
        if (claim.damaged) parts_.counters.damaged.Add();
      }
      if (asked.group != nullptr) asked.Tell(answered);
      End(asked, absl::OkStatus(), Server::kAnswered, now);
      break;
    case ScriptGroup::State::kAgain:
      SendAgain(asked, now);
      break;
    case ScriptGroup::State::kFailed:
      parts_.link.OnError({answered.status.message().data(), answered.status.message().size()});
      if (absl::IsUnavailable(answered.status)) {
        End(asked, answered.status, Server::kRefused, now);
      } else {
        EndUnknown(asked, answered.status, Server::kAnswered, /*lost=*/false, now);
      }
      break;
  }
}

// The server is well, and did nothing.
void CallQueue::Follow(Call& call, const Redirect& to, Time now) {
  for (AskedGroup* asked : call.asked) {
    if (asked->group == nullptr) {
      parts_.groups.End(*asked, absl::OkStatus(), now);
      continue;
    }
    guard_.Succeeded(asked->ticket);
    parts_.redirects->Follow(*asked, to, now);
  }
}

void CallQueue::SendAgain(AskedGroup& asked, Time now) {
  if (asked.group == nullptr) return parts_.groups.End(asked, absl::OkStatus(), now);
  if (asked.turns - asked.redirects >= ScriptCall::kMostTurns) {
    return End(asked, absl::UnavailableError("others change the state all the time"),
               Server::kAnswered, now);
  }
  waiting_.push_back(&asked);
  parts_.turn.Ask();
}

void CallQueue::End(AskedGroup& asked, const absl::Status& status, Server server, Time now) {
  if (asked.group != nullptr) Judge(asked, status, server);
  parts_.groups.End(asked, status, now);
}

// What its end says of the store.
void CallQueue::Judge(const AskedGroup& asked, const absl::Status& status, Server server) {
  if (server == Server::kAnswered) return guard_.Succeeded(asked.ticket);
  const bool failed = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  if (!failed || !asked.sent_here) return guard_.Neither(asked.ticket);
  guard_.Failed(asked.ticket, status, server == Server::kRefused);
}

void CallQueue::EndUnknown(AskedGroup& asked, const absl::Status& status, Server server, bool lost,
                           Time now) {
  if (asked.group != nullptr) {  // else OnLate() has done all this
    ReleaseSlots(asked, lost);
    if (absl::IsDeadlineExceeded(status)) parts_.counters.late.Add();
  }
  End(asked, status, server, now);
}

void CallQueue::ReleaseSlots(const AskedGroup& asked, bool lost) {
  for (std::size_t i = 0; i < asked.claims.size(); ++i) {
    const ScriptClaim& claim = asked.claims[i];
    if (claim.slot == 0 || claim.cost == 0) continue;
    give_back_.Release(claim.key, *asked.group->claims[i].limit, claim.slot, claim.cost, lost);
  }
}

void CallQueue::OnLate(AskedGroup& asked, Time now) {
  const absl::Status& late = parts_.groups.late();
  if (!asked.on_its_way) {
    std::erase(waiting_, &asked);
    return End(asked, late, Server::kSilent, now);
  }
  Judge(asked, late, Server::kSilent);
  ReleaseSlots(asked, false);
  parts_.groups.EndButKeep(asked, now);
}

void CallQueue::FailWaiting(const absl::Status& why) {
  const Time now = SteadyNow();
  while (!waiting_.empty()) {
    AskedGroup& asked = *waiting_.back();
    waiting_.pop_back();
    End(asked, why, Server::kSilent, now);
  }
}

}  // namespace sluice::redis
