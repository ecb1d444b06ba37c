#include "sluice/store/redis/internal/call_queue.h"

#include <algorithm>
#include <utility>

#include "sluice/base/steady_now.h"

namespace sluice::redis {

CallQueue::CallQueue(net::EventLoop& loop, const StoreParts& parts, std::size_t max_waiting,
                     Guard& guard, GiveBack& give_back)
    : parts_(parts),
      max_waiting_(max_waiting),
      guard_(guard),
      give_back_(give_back),
      full_(absl::ResourceExhaustedError("too many requests wait for the store")),
      late_(absl::DeadlineExceededError("the store did not answer in time")),
      wake_(loop, [this] { OnDeadline(); }) {}

absl::Status CallQueue::Add(RemoteGroup& group, Time deadline, RemoteStore::Done done) {
  if (free_groups_.empty()) {
    if (all_groups_.size() >= max_waiting_) return Refuse(full_);
    all_groups_.push_back(std::make_unique<AskedGroup>());
    free_groups_.push_back(all_groups_.back().get());
  }
  AskedGroup& asked = *free_groups_.back();
  if (absl::Status refusal = guard_.Admit(&asked.ticket); !refusal.ok()) return Refuse(refusal);
  free_groups_.pop_back();
  asked.Take(parts_.keys, slots_, group);
  asked.done = std::move(done);
  asked.since = SteadyNow();
  asked.deadline = deadline;
  deadlines_.Add(asked);
  wake_.At(deadline);
  waiting_.push_back(&asked);
  parts_.counters.waiting.Set(all_groups_.size() - free_groups_.size());
  parts_.turn.Ask();
  return absl::OkStatus();
}

const absl::Status& CallQueue::Refuse(const absl::Status& why) {
  parts_.counters.refused.Add();
  return why;
}

void CallQueue::Send() {
  if (waiting_.empty()) return;
  // The timer may be late; nothing that is late is sent.
  const Time now = SteadyNow();
  if (deadlines_.first().deadline <= now) OnDeadline();
  leaving_.swap(waiting_);
  for (std::size_t first = 0; first < leaving_.size(); first += ScriptCall::kMostGroups) {
    SendCall(first, std::min(ScriptCall::kMostGroups, leaving_.size() - first), now);
  }
  leaving_.clear();
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
    asked.on_its_way = true;
  }
  bytes_.clear();
  parts_.script.AppendDecide(parts_.link.sha(), call.groups, parts_.clock.Read(), &bytes_);
  const absl::Status sent = parts_.link.Send(
      bytes_, latest,
      [this, &call](const absl::StatusOr<net::RedisReply>& reply) { OnReply(call, reply); });
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
    // What lost the connection with its answer may still be read from it, after what we send next.
    const bool lost = absl::IsUnavailable(reply.status());
    // The connection's timer and ours are due at the same instant.
    const absl::Status& why = absl::IsDeadlineExceeded(reply.status()) ? late_ : reply.status();
    for (AskedGroup* asked : call.asked) EndUnknown(*asked, why, Server::kSilent, lost, now);
  }
  call.asked.clear();
  call.groups.clear();
  free_calls_.push_back(&call);
}

void CallQueue::OnAnswers(Call& call, const net::RedisReply& reply, Time now) {
  const absl::Status status = parts_.script.ReadDecide(reply, call.groups, parts_.clock.Read());
  parts_.counters.disagreements.Set(parts_.script.disagreements());
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

void CallQueue::SendAgain(AskedGroup& asked, Time now) {
  if (asked.group == nullptr) return Recycle(asked);
  if (asked.turns >= ScriptCall::kMostTurns) {
    return End(asked, absl::UnavailableError("others change the state all the time"),
               Server::kAnswered, now);
  }
  waiting_.push_back(&asked);
  parts_.turn.Ask();
}

void CallQueue::End(AskedGroup& asked, const absl::Status& status, Server server, Time now) {
  if (asked.group == nullptr) return Recycle(asked);
  Judge(asked, status, server);
  deadlines_.Remove(asked);
  parts_.counters.waits.Add(now - asked.since);
  RemoteStore::Done done = std::move(asked.done);
  Recycle(asked);
  done(status);
}

// What its end says of the store.
void CallQueue::Judge(const AskedGroup& asked, const absl::Status& status, Server server) {
  if (server == Server::kAnswered) return guard_.Succeeded(asked.ticket);
  const bool failed = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  if (!failed || asked.turns == 0) return guard_.Neither(asked.ticket);
  guard_.Failed(asked.ticket, status, server == Server::kRefused);
}

void CallQueue::EndUnknown(AskedGroup& asked, const absl::Status& status, Server server, bool lost,
                           Time now) {
  if (asked.group != nullptr) {  // else OnDeadline() has done all this
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

void CallQueue::OnDeadline() {
  const Time now = SteadyNow();
  while (!deadlines_.empty() && deadlines_.first().deadline <= now) {
    AskedGroup& asked = deadlines_.first();
    parts_.counters.late.Add();
    if (!asked.on_its_way) {
      std::erase(waiting_, &asked);
      End(asked, late_, Server::kSilent, now);
      continue;
    }
    Judge(asked, late_, Server::kSilent);
    deadlines_.Remove(asked);
    ReleaseSlots(asked, false);
    asked.KeepLimits();
    asked.group = nullptr;
    parts_.counters.waits.Add(now - asked.since);
    RemoteStore::Done done = std::move(asked.done);
    done(late_);
  }
  if (!deadlines_.empty()) wake_.At(deadlines_.first().deadline);
}

void CallQueue::FailWaiting(const absl::Status& why) {
  const Time now = SteadyNow();
  while (!waiting_.empty()) {
    AskedGroup& asked = *waiting_.back();
    waiting_.pop_back();
    End(asked, why, Server::kSilent, now);
  }
}

void CallQueue::Recycle(AskedGroup& asked) {
  asked.group = nullptr;
  asked.kept.clear();
  free_groups_.push_back(&asked);
  parts_.counters.waiting.Set(all_groups_.size() - free_groups_.size());
}

}  // namespace sluice::redis
