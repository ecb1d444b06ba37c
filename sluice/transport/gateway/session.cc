#include "sluice/transport/gateway/session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "sluice/net/await.h"
#include "sluice/transport/check.h"
#include "sluice/transport/gateway/trailers.h"
#include "sluice/transport/gateway/upgrade.h"
#include "sluice/transport/problem.h"

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;
using net::Http1Stream;
using net::Task;
using PartState = Http1Stream::BodyPart::State;

constexpr Duration kSlow = 100ms;

// Who sends such a request is not trusted with a second one on the same connection.
constexpr bool kClose = true;

constexpr std::string_view kBodyTooLong = "the body of the request is longer than allowed";

// RFC 9110 (9.2.2).
bool IsIdempotent(std::string_view method) {
  for (const std::string_view idempotent : {"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"}) {
    if (method == idempotent) return true;
  }
  return false;
}

}  // namespace

// Whatever way a request ends, what it holds comes back, and the books are told.
class GatewaySession::RequestScope {
 public:
  explicit RequestScope(GatewaySession& session) : session_(session) {}
  RequestScope(const RequestScope&) = delete;
  RequestScope& operator=(const RequestScope&) = delete;
  ~RequestScope() {
    session_.slow_alarm_.Clear();
    session_.renew_alarm_.Clear();
    session_.UnwatchClient();
    if (session_.left_)
      session_.parts_.counters.client_left.fetch_add(1, std::memory_order_relaxed);
    session_.parts_.limiter.Finish(session_.request_->outcome);
    if (session_.request_->outcome.allowed())
      session_.parts_.counters.books.Close(session_.request_->end);
  }

 private:
  GatewaySession& session_;
};

class GatewaySession::AccessScope {
 public:
  explicit AccessScope(GatewaySession& session) : session_(session) { session_.BeginAccess(); }
  AccessScope(const AccessScope&) = delete;
  AccessScope& operator=(const AccessScope&) = delete;
  ~AccessScope() { session_.EndAccess(); }

 private:
  GatewaySession& session_;
};

class GatewaySession::StateScope {
 public:
  explicit StateScope(GatewaySession& session) : session_(session) { session_.request_.Take(); }
  StateScope(const StateScope&) = delete;
  StateScope& operator=(const StateScope&) = delete;
  ~StateScope() { session_.request_.GiveBack(); }

 private:
  GatewaySession& session_;
};

// The settings in force when a request's head was read are those of the request to its end.
class GatewaySession::TermsScope {
 public:
  explicit TermsScope(GatewaySession& session) : session_(session) {
    session_.terms_ = session_.parts_.terms;
    session_.UseLimits(session_.terms_->limits);
  }
  TermsScope(const TermsScope&) = delete;
  TermsScope& operator=(const TermsScope&) = delete;
  ~TermsScope() {
    session_.UseLimits(session_.parts_.limits);
    session_.terms_.reset();
  }

 private:
  GatewaySession& session_;
};

GatewaySession::GatewaySession(net::EventLoop& loop, net::Socket socket, LoopParts& parts)
    : Http1Session(loop, std::move(socket), parts.limits, parts.tls),
      parts_(parts),
      peer_address_(net::IpOf(peer().address())),
      peer_text_(peer_address_.ToString()),
      place_(loop, parts.places),
      hold_timer_(loop.timers()),
      slow_alarm_(*this, loop.deadlines()),
      write_alarm_(*this, loop.deadlines()),
      send_alarm_(*this, loop.deadlines()),
      renew_alarm_(*this, loop.deadlines()),
      tunnel_alarm_(*this, loop.deadlines()) {}

void GatewaySession::EndNow() {
  left_ = true;
  hold_timer_.Cancel();
  parts_.places.GiveUp(place_);
  if (upstream_) upstream_->Abort();
  stream().Abort();
}

void GatewaySession::WatchClient() {
  if (std::exchange(watching_, true)) return;
  stream().WatchHangup(*this);
}

void GatewaySession::UnwatchClient() {
  if (!std::exchange(watching_, false)) return;
  stream().UnwatchHangup();
}

void GatewaySession::RenewSlots() {
  parts_.limiter.Renew(request_->outcome);
  renew_alarm_.Set(renew_every_);
}

void GatewaySession::OnHandshake(const absl::Status& status) {
  if (absl::IsCancelled(status)) return;  // a load balancer that looks whether the port is open
  LoopCounters& counters = parts_.counters;
  std::atomic<std::uint64_t>& count = !status.ok()         ? counters.tls_failures
                                      : stream().resumed() ? counters.tls_resumed
                                                           : counters.tls_full;
  count.fetch_add(1, std::memory_order_relaxed);
}

Task<bool> GatewaySession::ServeRequest() {
  const StateScope state(*this);
  const TermsScope terms(*this);
  ReadHop();
  request_->received = 0;
  request_->grpc_web = GrpcWebOf(head());
  request_->cors_fields.clear();
  terms_->cors.AppendFields(head(), &request_->cors_fields);
  if (AsksForHealth()) co_return co_await AnswerHealth();
  const AccessScope access(*this);
  if (const PathError error = CheckPath(); error != PathError::kNone) {
    co_return co_await SendProblem(400, ToString(error), kClose);
  }
  ReadUpgrade(head(), options().upgrades, &request_->upgrade);
  if (!request_->upgrade.empty() && head().framing.has_body()) {
    // It would have to be read to the end before the other protocol begins; nobody sends one.
    co_return co_await SendProblem(400, "a request for an upgrade has a body", kClose);
  }
  if (TooLong(head().framing.length)) {
    co_return co_await SendProblem(413, kBodyTooLong, kClose);
  }
  co_await transport::Decided(parts_.limiter, Asked(), request_->outcome);
  NoteDecision();
  const RequestScope scope(*this);
  if (left_) {  // while a store was asked
    parts_.limiter.Undo(request_->outcome);
    co_return false;
  }
  if (!request_->outcome.allowed()) co_return co_await Deny();
  if (request_->outcome.answer == Answer::kDelayed) {
    const bool still_there = co_await Hold();
    if (!still_there) co_return false;
  }
  slow_alarm_.Set(kSlow);
  co_return co_await Forward();
}

void GatewaySession::AppendRefusalFields(std::string* fields) {
  request_.Take();
  request_->request_id.clear();
  parts_.request_ids.Append(&request_->request_id);
  net::AppendField(kRequestIdField, request_->request_id, fields);
}

void GatewaySession::ReadHop() {
  request_->fields.clear();
  for (const net::Field& field : head().fields)
    request_->fields.push_back({field.name, field.value});
  const ClientAddressOptions& options = parts_.limiter.rules()->rules().options().client_address;
  request_->hop = {.peer = peer_text_,
                   .trusted = IsTrustedProxy(options, peer_address_),
                   .chain = options.header,
                   .scheme = stream().secure() ? "https" : "http"};
  request_->request_id.assign(KeptRequestId(head(), request_->hop.trusted));
  if (request_->request_id.empty()) parts_.request_ids.Append(&request_->request_id);
  request_->hop.request_id = request_->request_id;
}

Task<bool> GatewaySession::SendOwn(net::Answer answer) {
  net::AppendField(kRequestIdField, request_->request_id, &answer.more_fields);
  answer.more_fields.append(request_->cors_fields);
  NoteOwn(answer);
  co_return co_await Send(answer);
}

Task<bool> GatewaySession::SendProblem(int status, std::string_view why, bool close,
                                       std::string_view more_fields) {
  net::Answer answer = net::ProblemAnswer(status, why);
  answer.close = close;
  answer.more_fields.assign(more_fields);
  if (request_->grpc_web != GrpcWeb::kNone)
    MakeGrpcWeb(request_->grpc_web, why, request_->cors_fields.starts_with("Access-Control"),
                &answer);
  co_return co_await SendOwn(std::move(answer));
}

bool GatewaySession::AsksForHealth() const {
  const std::string& path = options().health_path;
  const std::string_view asked = head().path;
  return !path.empty() && asked.substr(0, asked.find('?')) == path;
}

// For whoever balances load over several gateways: says nothing of the upstream, which they share.
Task<bool> GatewaySession::AnswerHealth() {
  net::Answer answer;
  const bool leaving = LastAnswer();
  answer.status = leaving ? 503 : 200;
  answer.content_type = "text/plain";
  answer.body = leaving ? "draining\n" : "ok\n";
  net::AppendField("Cache-Control", "no-store", &answer.more_fields);
  co_return co_await SendOwn(std::move(answer));
}

// The upstream must not get a path that it may read differently from the rules.
PathError GatewaySession::CheckPath() {
  if (head().path == "*") return PathError::kNone;  // OPTIONS of the server as a whole
  request_->path_buffer.resize(
      std::max(request_->path_buffer.size(), PathBufferSize(head().path.size())));
  return NormalizePath(head().path, request_->path_buffer).error;
}

LimitRequest GatewaySession::Asked() {
  return {.method = head().method,
          .target = head().path,
          .host = head().host,
          .peer = peer_address_,
          .headers = request_->fields,
          .exempt = terms_->cors.Exempts(head())};
}

void GatewaySession::NoteDecision() {
  Books& books = parts_.counters.books;
  if (request_->outcome.allowed()) {
    books.EnterAdmitted();
  } else {
    books.EnterDenied();
  }
  request_->end = RequestEnd::kAborted;
  request_->access.decided = true;
  KeepSlots();
}

// While the request holds concurrency slots, its client is watched and the slots are renewed.
void GatewaySession::KeepSlots() {
  Duration ttl = Duration::max();
  bool slots = false;
  for (const Claim& claim : request_->outcome.claims) {
    const auto* limit = std::get_if<concurrency::Limit>(claim.limit);
    if (limit == nullptr || claim.receipt.units == 0) continue;
    slots = true;
    if (limit->slot_ttl > Duration{0}) ttl = std::min(ttl, limit->slot_ttl);
  }
  if (slots) WatchClient();
  renew_every_ = ttl / 3;
  if (ttl != Duration::max()) renew_alarm_.Set(renew_every_);
}

Task<bool> GatewaySession::Deny() {
  request_->denial.status = transport::DenialStatus(request_->outcome);
  request_->denial.content_type = transport::ContentTypeOf(options().body);
  request_->denial.body.clear();
  terms_->denials.Append(request_->outcome, &request_->denial.body);
  request_->denial.more_fields.clear();
  transport::AppendDenialFields(request_->outcome, &request_->denial.more_fields);
  terms_->fields.Append(request_->outcome, &request_->denial.more_fields);
  net::AppendField(kRequestIdField, request_->request_id, &request_->denial.more_fields);
  request_->denial.more_fields.append(request_->cors_fields);
  if (request_->grpc_web != GrpcWeb::kNone) {
    std::string message;
    transport::AppendDenialText(request_->outcome, &message);
    MakeGrpcWeb(request_->grpc_web, message, request_->cors_fields.starts_with("Access-Control"),
                &request_->denial);
  }
  NoteOwn(request_->denial);
  co_return co_await Send(request_->denial);
}

// Waits for the request's instant. False: the client did not.
Task<bool> GatewaySession::Hold() {
  WatchClient();
  co_await net::Await<bool>(
      [this](auto done) { hold_timer_.Start(request_->outcome.delay, std::move(done)); });
  if (left_) parts_.limiter.Undo(request_->outcome);
  co_return !left_;
}

Task<bool> GatewaySession::Forward() {
  request_->retryable = !head().framing.has_body() && IsIdempotent(head().method);
  request_->takes_trailers = TakesTrailers(head());
  request_->in_chunks = head().framing.kind == net::BodyFraming::Kind::kChunked;
  request_->out.clear();
  AppendUpstreamHead(head(), request_->hop, upstreams().name(0), request_->upgrade, &request_->out);

  const bool entered = co_await parts_.places.Enter(place_, options().connect_timeout);
  if (!entered) co_return co_await AnswerFailure(left_ ? Failure::kClientLeft : Failure::kBusy);
  const Failure failure = co_await AskUpstream();
  bool again = false;
  if (failure == Failure::kNone && request_->answer.status == 101) {
    co_await Tunnel();
  } else if (failure == Failure::kNone) {
    again = co_await Deliver();
  }
  co_await StopPump();
  upstream_.reset();
  parts_.places.Leave();
  if (failure != Failure::kNone) again = co_await AnswerFailure(failure);
  co_return again && !left_;
}

void GatewaySession::NoteUpstreamError() {
  request_->end = RequestEnd::kFailed;
  parts_.counters.upstream_errors.fetch_add(1, std::memory_order_relaxed);
}

Task<bool> GatewaySession::AnswerFailure(Failure failure) {
  if (failure == Failure::kClientLeft || left_) co_return false;
  if (failure == Failure::kClientBody) {
    co_return co_await SendProblem(400, "the request's body is out of form");
  }
  if (failure == Failure::kClientLong) {
    co_return co_await SendProblem(413, kBodyTooLong, kClose);
  }
  if (failure == Failure::kClientSlow) {
    co_return co_await SendProblem(408, "the body of the request took too long");
  }
  NoteUpstreamError();
  int status = 502;
  std::string_view why = "the upstream cannot be reached";
  switch (failure) {
    case Failure::kBusy:
      status = 503;
      why = "all connections to the upstream are in use";
      break;
    case Failure::kTimeout:
      status = 504;
      why = "the upstream did not answer in time";
      break;
    case Failure::kBadAnswer:
    case Failure::kBadUpgrade:
      why = "the upstream's answer cannot be read";
      break;
    default:
      break;
  }
  std::string limits;
  terms_->fields.Append(request_->outcome, &limits);
  co_return co_await SendProblem(status, why, /*close=*/false, limits);
}

}  // namespace sluice::gateway
