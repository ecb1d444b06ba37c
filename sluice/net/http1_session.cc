#include "sluice/net/http1_session.h"

#include <utility>

namespace sluice::net {

Http1Session::Http1Session(EventLoop& loop, Socket socket, const Http1Limits& limits,
                           std::shared_ptr<const TlsServerContext> tls)
    : limits_(&limits), tls_(std::move(tls)), stream_(loop, std::move(socket)) {}

Task<void> Http1Session::Run() {
  bool again = true;
  if (tls_) again = co_await Secure();
  if (!again) co_return;
  while (again) {
    const bool asked = co_await NextRequest();
    if (!asked) co_return;
    again = co_await ServeRequest();
  }
  // Where nothing more is under way, a plain close does no harm and is done at once.
  const bool more = !stream_.body().done() || !stream_.idle() || stream_.Readable();
  if (more) co_return co_await stream_.CloseGently(limits_->close_time);
  if (!stream_.secure()) co_return;
  stream_.Set(limits_->close_time);
  co_await stream_.EndWriting();
}

Task<bool> Http1Session::Secure() {
  stream_.Set(limits_->head_time);
  const absl::Status status = co_await stream_.AcceptTls(*tls_);
  OnHandshake(status);
  tls_.reset();
  idle_ = false;
  if (status.code() == absl::StatusCode::kUnimplemented) {
    co_await Refuse({400, "this port speaks TLS; ask with https://"});
  }
  if (!status.ok()) co_return false;
  stream_.Clear();
  request_is_coming_ = draining_;
  co_return true;
}

void Http1Session::Drain() {
  draining_ = true;
  // A request that has arrived but was not looked at yet is answered. A handshake that has begun is
  // finished, and the request that comes right behind it is answered, too.
  if (idle_ && stream_.idle() && !stream_.Readable()) stream_.CancelWait();
}

Task<bool> Http1Session::NextRequest() {
  stream_.EndHead();
  at_hand_.GiveBack();
  // What a long body made of the buffer is not kept by a connection that waits.
  stream_.buffer().Shrink(Http1Stream::kFirstBytes);
  idle_ = true;
  const bool coming = std::exchange(request_is_coming_, false);
  if (draining_ && !coming && stream_.idle() && !stream_.Readable()) co_return false;
  stream_.Set(coming ? limits_->head_time : limits_->idle_time);
  const Http1Stream::HeadState state = co_await stream_.ReadHead(limits_->head, limits_->head_time);
  idle_ = false;
  if (state == Http1Stream::HeadState::kEnded) {
    const bool slow = stream_.timed_out() && !stream_.idle();
    if (slow) co_await Refuse({408, "the head of the request took too long"});
    co_return false;
  }
  at_hand_.Take();
  HeadProblem problem = stream_.problem();
  if (problem.ok()) problem = ParseRequestHead(stream_.head_bytes(), &at_hand_->head);
  if (!problem.ok()) {
    co_await Refuse(problem);
    co_return false;
  }
  stream_.Clear();
  to_head_ = head().method == "HEAD";
  stream_.StartBody(head().framing);
  co_return true;
}

Task<void> Http1Session::Refuse(const HeadProblem& problem) {
  Answer answer = ProblemAnswer(problem.status, problem.reason);
  AppendRefusalFields(&answer.more_fields);
  if (!at_hand_.held()) at_hand_.Take();
  std::string& out = at_hand_->out;
  out.clear();
  AppendAnswer(answer, /*keep_alive=*/false, /*without_body=*/false, &out);
  stream_.Set(limits_->write_time);
  const bool sent = co_await stream_.Write(out);
  OnRefused(answer);
  if (sent) co_await stream_.CloseGently(limits_->close_time);
}

Task<bool> Http1Session::SendContinue() {
  stream_.Set(limits_->write_time);
  const bool sent = co_await stream_.Write("HTTP/1.1 100 Continue\r\n\r\n");
  stream_.Clear();
  co_return sent;
}

Task<bool> Http1Session::Send(const Answer& answer) {
  // A client that waits for 100 will send no body, or send it unasked: nobody can tell which.
  const bool body_unclear = head().expect_continue && !stream_.body().done();
  const bool body_long = stream_.body().remaining() > limits_->skipped_body_bytes;
  const bool keep_alive = !answer.close && head().keep_alive && !LastAnswer() && !body_unclear &&
                          !body_long && !stream_.body().bad() && !stream_.timed_out();
  std::string& out = at_hand_->out;
  out.clear();
  AppendAnswer(answer, keep_alive, to_head_, &out);
  stream_.Set(limits_->write_time);
  const bool sent = co_await stream_.Write(out);
  if (!sent) co_return false;
  stream_.Clear();
  if (!keep_alive) co_return false;
  if (stream_.body().done()) co_return true;
  co_return co_await stream_.SkipBody(limits_->skipped_body_bytes, limits_->body_time);
}

}  // namespace sluice::net
