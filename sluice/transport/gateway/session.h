// One client's connection through the gateway: each request is decided on, then forwarded or not.
//
//   request -> Limiter::Check -> kLimited, ...:  429 and its kind; the upstream hears nothing
//                             -> kDelayed:       held until its instant      (client leaves: Undo)
//                             -> kAllowed:       a place in the pool, a connection, the request's
//                                                head and body there, the answer's back
//                             <- Limiter::Finish when the answer ended or anybody left
//
// Each request has an id (request_id.h), which the upstream is told and every answer carries.
//
// A charge stays also where the upstream could not be reached: the request was admitted.
//
// Bodies stream in both directions at once, 64 KiB each in memory at most: who sends waits for who
// reads. A small request or answer leaves in one write. In steady state nothing is allocated.
//
// A request that asks for another protocol (upgrade.h) is decided on as any other. When the
// upstream agrees (101) the two connections are joined, byte by byte, until both sides have said
// all or one is gone; the request, its slots and its place in the pool last as long.
//
// A request without a body and with an idempotent method (RFC 9110, 9.2.2) that met a kept
// connection which had died is sent once more, on a new one, unless a byte of an answer has come.
//
// That a client has left is noticed at once while its request is held or holds a concurrency slot,
// else after a tenth of a second: a fast answer is not worth the two system calls.
//
// Each side has its own time. While a body is on its way the client must send content of it within
// body_timeout (else 408) and the upstream must take it within response_timeout; the upstream's
// time to answer begins when it has the whole request (else 504).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/spare.h"
#include "sluice/net/http1_session.h"
#include "sluice/net/readiness.h"
#include "sluice/rule/path.h"
#include "sluice/transport/gateway/heads.h"
#include "sluice/transport/gateway/loop_parts.h"
#include "sluice/transport/gateway/request_state.h"

namespace sluice::gateway {

class GatewaySession final : public net::Http1Session, private net::HangupWatcher {
 public:
  // `parts` outlives the session.
  GatewaySession(net::EventLoop& loop, net::Socket socket, LoopParts& parts);

  void Abort() override { EndNow(); }

 private:
  // Why there is no answer of the upstream's to pass on.
  enum class Failure : std::uint8_t {
    kNone,
    kBusy,         // no place in the pool
    kUnreachable,  // refused, reset, ended early
    kTimeout,
    kBadAnswer,   // not HTTP/1.1
    kBadUpgrade,  // a 101 to something that was not asked for
    kClientBody,  // the request's body is out of form
    kClientSlow,  // no content of it came in time
    kClientLong,  // it is longer than body_bytes
    kClientLeft,
  };
  class AccessScope;
  class RequestScope;
  class StateScope;
  class TermsScope;

  [[nodiscard]] const GatewayOptions& options() const { return terms_->options; }
  [[nodiscard]] UpstreamGroup& upstreams() const { return *terms_->upstreams; }

  void OnHandshake(const absl::Status& status) override;
  // Before the drain kept connections are let go one by one: none of them is met by its end.
  [[nodiscard]] bool LastAnswer() const override { return draining() || parts_.leaving; }
  net::Task<bool> ServeRequest() override;
  void AppendRefusalFields(std::string* fields) override;
  void OnRefused(const net::Answer& answer) override;
  void ReadHop();
  // An answer of the gateway's own: with the request's id and the CORS fields. As a problem, or in
  // the form of a gRPC-Web call.
  net::Task<bool> SendOwn(net::Answer answer);
  net::Task<bool> SendProblem(int status, std::string_view why, bool close = false,
                              std::string_view more_fields = {});
  [[nodiscard]] bool AsksForHealth() const;
  net::Task<bool> AnswerHealth();
  [[nodiscard]] PathError CheckPath();
  [[nodiscard]] LimitRequest Asked();
  void NoteDecision();
  void KeepSlots();
  net::Task<bool> Deny();
  net::Task<bool> Hold();
  net::Task<bool> Forward();
  net::Task<bool> AnswerFailure(Failure failure);
  void NoteUpstreamError();
  [[nodiscard]] bool TooLong(std::uint64_t body_bytes) const {
    return body_bytes > options().body_bytes;
  }

  [[nodiscard]] std::string_view ClientText();
  void BeginAccess();
  void NoteAsked();
  void NoteAnswered();
  void NoteOwn(const net::Answer& answer);
  void EndAccess();

  net::Task<Failure> AskUpstream();
  net::Task<Failure> Attempt(bool fresh);
  net::Task<Failure> Connect();
  net::Task<Failure> ConnectToChosen(std::string* why);
  void NoteFailure(std::string_view why);
  net::Task<Failure> SendRequest();
  net::Task<void> PumpBody();
  net::Task<void> StopPump();
  void TimeAnswer();
  net::Task<Failure> ReadAnswerHead();
  [[nodiscard]] Failure WhyEnded() const;
  net::Task<bool> PassInterim();

  net::Task<void> Tunnel();
  net::Task<void> Carry(net::Http1Stream& from, net::Http1Stream& to);
  void EndTunnel();

  net::Task<bool> Deliver();
  net::Task<bool> WritePart(const net::Http1Stream::BodyPart& part, bool in_chunks);
  net::Task<bool> WriteToClient(std::string_view first, std::string_view second = {},
                                std::string_view third = {});

  void OnSendTimeout();
  void WatchClient();
  void UnwatchClient();
  void OnHangup() override { EndNow(); }
  void EndNow();
  void RenewSlots();

  LoopParts& parts_;
  TermsPtr terms_;  // of the request at hand; null between requests
  IpAddress peer_address_;
  std::string peer_text_;
  Spare<RequestState> request_;  // from the head of a request to the end of its answer
  IpAddress client_address_;
  std::string client_text_;  // of that

  UpstreamPlaces::Place place_;
  UpstreamPool::Connection upstream_;
  std::size_t chosen_ = 0;               // of upstreams()
  std::optional<net::Task<void>> pump_;  // sends a long body while the answer is awaited
  Failure pump_failure_ = Failure::kNone;

  bool left_ = false;  // the client has left, or the server has aborted the session
  bool watching_ = false;

  net::Timer hold_timer_;
  // The request takes long: watch the client. The client does not read. The upstream does not take
  // the body. The slots need renewal. Nothing passes the tunnel.
  net::Alarm<GatewaySession, &GatewaySession::WatchClient> slow_alarm_;
  net::Alarm<GatewaySession, &GatewaySession::EndNow> write_alarm_;
  net::Alarm<GatewaySession, &GatewaySession::OnSendTimeout> send_alarm_;
  net::Alarm<GatewaySession, &GatewaySession::RenewSlots> renew_alarm_;
  net::Alarm<GatewaySession, &GatewaySession::EndTunnel> tunnel_alarm_;
  Duration renew_every_{0};
  Duration tunnel_patience_{0};
};

}  // namespace sluice::gateway
