#include "sluice/store/redis/internal/guard.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/base/steady_now.h"

namespace sluice::redis {

namespace {

constexpr int kMostLate = 10;

}  // namespace

std::string_view NameOf(BreakerState state) {
  switch (state) {
    case BreakerState::kClosed:
      return "closed";
    case BreakerState::kOpen:
      return "open";
    case BreakerState::kHalfOpen:
      break;
  }
  return "half-open";
}

Guard::Guard(net::EventLoop& loop, const StoreParts& parts, BreakerOptions breaker,
             OnHealth on_health)
    : parts_(parts),
      probe_deadline_(breaker.probe_deadline),
      on_health_(std::move(on_health)),
      breaker_(breaker),
      wake_(loop, [this] { Probe(); }),
      health_{.since = parts.clock.Read().wall, .why = "there is no connection yet"} {}

absl::Status Guard::Admit(Breaker::Ticket* ticket) {
  if (parts_.link.gone()) return parts_.link.why();
  return breaker_.Admit(ticket) ? absl::OkStatus() : refusal_;
}

void Guard::Succeeded(Breaker::Ticket ticket) {
  if (breaker_.Succeeded(ticket)) Tell();
}

void Guard::Failed(Breaker::Ticket ticket, const absl::Status& why, bool refused) {
  if (breaker_.Failed(ticket, SteadyNow(), refused)) Open(why);
}

void Guard::OnWrongServer(std::string_view why) {
  breaker_.Trip(SteadyNow());
  Open(absl::UnavailableError({why.data(), why.size()}));
}

void Guard::OnUsable() {
  breaker_.WantProbeNow();
  Probe();
  Tell();
}

// It has opened.
void Guard::Open(const absl::Status& why) {
  refusal_ =
      absl::UnavailableError(absl::StrCat("the store is not asked for now: ", why.message()));
  wake_.At(breaker_.next_probe());
  Tell();
}

// If one is due. Without a connection its return brings the next.
void Guard::Probe() {
  if (breaker_.state() == BreakerState::kClosed || !parts_.link.usable()) return;
  const Time now = SteadyNow();
  if (!breaker_.WantsProbe(now)) return wake_.At(breaker_.next_probe());
  breaker_.ProbeSent(now);
  wake_.At(breaker_.next_probe());
  bytes_.clear();
  parts_.script.AppendRenew(parts_.link.sha(), {}, &bytes_);
  const absl::Status sent =
      parts_.link.Send(bytes_, now + probe_deadline_,
                       [this](const absl::StatusOr<net::RedisReply>& reply) { OnProbe(reply); });
  if (!sent.ok() && breaker_.ProbeFailed(now)) Tell();
}

void Guard::OnProbe(const absl::StatusOr<net::RedisReply>& reply) {
  absl::Status status = reply.status();
  if (absl::IsCancelled(status)) return;
  late_ = absl::IsDeadlineExceeded(status) ? late_ + 1 : 0;
  if (late_ == kMostLate) {
    // It may hear us, and be one answer behind for good.
    late_ = 0;
    parts_.link.Renew("probes have no answer in time");
  }
  if (reply.ok()) {
    status = parts_.script.ReadRenew(*reply, {}, parts_.clock.Read());
    if (reply->is_error()) parts_.link.OnError(reply->error());
    if (absl::IsFailedPrecondition(status)) parts_.link.LoadAgain();
  }
  const Time now = SteadyNow();
  if (status.ok() ? breaker_.ProbeAnswered(now) : breaker_.ProbeFailed(now)) Tell();
}

void Guard::Tell() {
  const bool usable = parts_.link.usable();
  if (!usable && !parts_.link.gone()) return;  // not yet known
  RedisHealth health{.up = usable && breaker_.state() == BreakerState::kClosed,
                     .since = parts_.clock.Read().wall,
                     .server = parts_.link.server(),
                     .breaker = breaker_.state()};
  if (!health.up) {
    health.why = std::string((usable ? refusal_ : parts_.link.why()).message());
  }
  const bool changed = !std::exchange(known_, true) || health.up != health_.up;
  if (!changed) health.since = health_.since;
  {
    const std::lock_guard lock(mutex_);
    health_ = health;
  }
  if (changed && on_health_) on_health_(health);
}

RedisHealth Guard::health() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

}  // namespace sluice::redis
