// The upstream's half of a GatewaySession: a request goes out, an answer's head comes back.
#include <utility>

#include "sluice/base/steady_now.h"
#include "sluice/net/http1_body.h"
#include "sluice/transport/gateway/session.h"
#include "sluice/transport/gateway/upgrade.h"
#include "sluice/transport/gateway/upstream_connection.h"

namespace sluice::gateway {
namespace {

using net::Http1Stream;
using net::Task;
using PartState = Http1Stream::BodyPart::State;

// Upstreams that a request tries to connect to, one after another.
constexpr int kMaxConnects = 3;

}  // namespace

Task<GatewaySession::Failure> GatewaySession::AskUpstream() {
  pump_failure_ = Failure::kNone;
  request_->heard = false;
  request_->answered = false;
  NoteAsked();
  chosen_ = upstreams().size() == 1 ? 0 : upstreams().Choose(SteadyNow());
  Failure failure = co_await Attempt(/*fresh=*/false);
  if (failure == Failure::kNone || !request_->retryable || left_) co_return failure;
  // Only a kept connection that died unused may be given another try: see Attempt().
  if (failure != Failure::kUnreachable || upstream_ == nullptr) co_return failure;
  parts_.counters.retries.fetch_add(1, std::memory_order_relaxed);
  co_return co_await Attempt(/*fresh=*/true);
}

// Leaves upstream_ set after kUnreachable exactly when the connection was a kept one and nothing
// had come from it.
Task<GatewaySession::Failure> GatewaySession::Attempt(bool fresh) {
  upstream_ = fresh ? nullptr : upstreams().TakeIdle(chosen_);
  const bool kept = upstream_ != nullptr;
  if (!kept) {
    const Failure failure = co_await Connect();
    if (failure != Failure::kNone) co_return failure;
  }
  upstreams().CountRequest(chosen_);
  Failure failure = co_await SendRequest();
  if (failure == Failure::kNone) failure = co_await ReadAnswerHead();
  const bool untouched = kept && !request_->heard && upstream_->buffer().empty();
  // How an answer that has begun goes on is for Deliver() to note. What the client can bring about
  // by what it asks for (kBadUpgrade) is no failure of the upstream.
  if (failure == Failure::kTimeout || failure == Failure::kBadAnswer ||
      (failure == Failure::kUnreachable && !untouched)) {
    NoteFailure(upstream_->error());
  }
  if (failure != Failure::kNone && !untouched) {
    co_await StopPump();
    upstream_.reset();
  }
  co_return failure;
}

// Nothing was sent yet, so any request may be tried with another upstream, whatever its method.
Task<GatewaySession::Failure> GatewaySession::Connect() {
  Balancer::Tried tried = 0;
  for (int i = 1;; ++i) {
    std::string why;
    const Failure failure = co_await ConnectToChosen(&why);
    if (failure == Failure::kNone || left_) co_return failure;
    NoteFailure(why);
    if (i == kMaxConnects) co_return failure;
    tried |= Balancer::Tried{1} << chosen_;
    const std::size_t next = upstreams().Choose(SteadyNow(), tried);
    if ((tried >> next & 1) != 0) co_return failure;
    chosen_ = next;
  }
}

void GatewaySession::NoteFailure(std::string_view why) {
  upstreams().Failed(chosen_, SteadyNow(), why);
}

// `why`, where it fails: what TLS said at the last address; else empty.
Task<GatewaySession::Failure> GatewaySession::ConnectToChosen(std::string* why) {
  Failure failure = Failure::kUnreachable;
  const std::shared_ptr<const Endpoints> endpoints = upstreams().endpoints(chosen_);
  for (const net::tcp::endpoint& endpoint : *endpoints) {
    upstream_ = upstreams().Make(chosen_, endpoint);
    upstream_->Set(options().connect_timeout);
    const bool connected = co_await upstream_->Open();
    if (left_) failure = Failure::kClientLeft;
    if (connected && !left_) co_return Failure::kNone;
    if (upstream_->timed_out()) failure = Failure::kTimeout;
    why->assign(upstream_->error());
    upstream_.reset();
    if (left_) break;
  }
  co_return failure;
}

// The head, and what has arrived of the body, in one write. A body that goes on is pumped.
Task<GatewaySession::Failure> GatewaySession::SendRequest() {
  upstream_->Set(options().response_timeout);
  Http1Stream::BodyPart part{{}, PartState::kEnded};
  std::string_view after;
  if (!stream().body().done()) {
    // From here on the head, and all views into it, are gone.
    const bool wants_permission = head().expect_continue;
    part = stream().NextArrivedPart();
    if (part.state == PartState::kBroken) co_return Failure::kClientBody;
    request_->received += part.content.size();
    if (TooLong(request_->received)) co_return Failure::kClientLong;
    const bool whole = stream().body().done();
    if (wants_permission && !whole && part.content.empty()) {
      const bool asked = co_await SendContinue();
      if (!asked) co_return Failure::kClientLeft;
    }
    if (request_->in_chunks && !part.content.empty()) {
      request_->out.append(net::ChunkLine(part.content.size()).view());
      after = whole ? std::string_view("\r\n0\r\n\r\n") : net::kChunkEnd;
    } else if (request_->in_chunks && whole) {
      after = net::kLastChunk;
    }
  }
  const bool sent = co_await upstream_->Write(request_->out, part.content, after);
  if (left_) co_return Failure::kClientLeft;
  if (sent && !stream().body().done()) {
    upstream_->Clear();  // see TimeAnswer()
    pump_.emplace(PumpBody());
  }
  // An upstream that takes no more may have answered early: the answer decides.
  co_return Failure::kNone;
}

Task<void> GatewaySession::PumpBody() {
  bool sent = true;
  while (sent) {
    const Http1Stream::BodyPart part = co_await stream().ReadBody(options().body_timeout);
    if (part.state == PartState::kBroken) {
      pump_failure_ = stream().body().bad()  ? Failure::kClientBody
                      : stream().timed_out() ? Failure::kClientSlow
                                             : Failure::kClientLeft;
      upstream_->Abort();
      co_return;
    }
    if (part.state == PartState::kEnded) break;
    request_->received += part.content.size();
    if (TooLong(request_->received)) {
      // Without its end, so that nobody takes what was sent for the whole.
      pump_failure_ = Failure::kClientLong;
      upstream_->Abort();
      co_return;
    }
    send_alarm_.Set(options().response_timeout);
    if (request_->in_chunks) {
      const net::ChunkLine line(part.content.size());
      sent = co_await upstream_->Write(line.view(), part.content, net::kChunkEnd);
    } else {
      sent = co_await upstream_->Write(part.content);
    }
    send_alarm_.Clear();
  }
  if (!request_->answered) upstream_->Set(options().response_timeout);
  if (sent && request_->in_chunks) co_await upstream_->Write(net::kLastChunk);
}

void GatewaySession::OnSendTimeout() {
  pump_failure_ = Failure::kTimeout;
  upstream_->Abort();
}

// The upstream's time to answer. It stands still as long as the request's body is on its way: a
// client that sends slowly is not the upstream's fault.
void GatewaySession::TimeAnswer() {
  if (pump_ && !pump_->done()) {
    upstream_->Clear();
  } else {
    upstream_->Set(options().response_timeout);
  }
}

// The answer is there or will never be: what is left of the request's body is not sent any more.
Task<void> GatewaySession::StopPump() {
  if (!pump_) co_return;
  if (!pump_->done()) {
    stream().CancelWait();
    upstream_->Abort();
  }
  co_await std::move(*pump_);
  pump_.reset();
}

GatewaySession::Failure GatewaySession::WhyEnded() const {
  if (left_) return Failure::kClientLeft;
  if (pump_failure_ != Failure::kNone) return pump_failure_;
  return upstream_->timed_out() ? Failure::kTimeout : Failure::kUnreachable;
}

Task<GatewaySession::Failure> GatewaySession::ReadAnswerHead() {
  for (int i = 0; i <= kMaxInterimAnswers; ++i) {
    const Http1Stream::HeadState state =
        co_await upstream_->ReadHead(limits().head, options().response_timeout);
    if (state == Http1Stream::HeadState::kEnded) co_return WhyEnded();
    request_->heard = true;
    if (state == Http1Stream::HeadState::kBad) co_return Failure::kBadAnswer;
    const net::HeadProblem problem =
        net::ParseResponseHead(upstream_->head_bytes(), to_head(), &request_->answer);
    if (!problem.ok()) co_return Failure::kBadAnswer;
    const bool changes = request_->answer.status == 101;
    if (changes && !ChangesAsAsked(request_->answer, request_->upgrade))
      co_return Failure::kBadUpgrade;
    request_->answered = changes || request_->answer.status >= 200;
    if (request_->answered) NoteAnswered();
    if (request_->answered) co_return Failure::kNone;
    const bool passed = co_await PassInterim();
    if (!passed) co_return Failure::kClientLeft;
    TimeAnswer();
  }
  co_return Failure::kBadAnswer;
}

// RFC 9110 (15.2): interim answers are passed on, apart from a 100, which the gateway gave itself.
Task<bool> GatewaySession::PassInterim() {
  if (request_->answer.status == 100 || head().minor_version == 0) co_return true;
  request_->out.clear();
  AppendInterimHead(request_->answer, &request_->out);
  co_return co_await WriteToClient(request_->out);
}

}  // namespace sluice::gateway
