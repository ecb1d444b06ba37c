// The client's half of a GatewaySession: the upstream's answer on its way.
#include <utility>

#include "sluice/net/http1_body.h"
#include "sluice/transport/gateway/session.h"
#include "sluice/transport/gateway/trailers.h"

namespace sluice::gateway {
namespace {

using net::Http1Stream;
using net::Task;
using PartState = Http1Stream::BodyPart::State;

constexpr std::size_t kJoinedBytes = 4096;

}  // namespace

Task<bool> GatewaySession::Deliver() {
  const bool asked_in_full = !pump_ || pump_->done();
  const bool reusable = request_->answer.keep_alive && asked_in_full;
  ClientHead how{.old_client = head().minor_version == 0,
                 .trailers = request_->takes_trailers,
                 .request_id = request_->request_id};
  const bool length_told = request_->answer.framing.kind != net::BodyFraming::Kind::kChunked &&
                           request_->answer.framing.kind != net::BodyFraming::Kind::kUntilClose;
  how.keep_alive = head().keep_alive && !LastAnswer() && asked_in_full && stream().body().done() &&
                   (length_told || !how.old_client);
  const bool in_chunks = SentInChunks(request_->answer, how);
  request_->access.status = request_->answer.status;
  request_->out.clear();
  AppendClientHead(request_->answer, how, terms_->fields, &request_->upstream_limits,
                   &request_->out);
  terms_->fields.Append(request_->outcome, request_->upstream_limits, &request_->out);
  request_->out.append("\r\n");

  upstream_->Clear();
  upstream_->StartBody(request_->answer.framing);
  request_->trailers.clear();
  if (in_chunks && request_->takes_trailers)
    upstream_->KeepTrailers(&request_->trailers, limits().head.max_bytes);
  Http1Stream::BodyPart part = upstream_->NextArrivedPart();
  while (true) {
    if (part.state == PartState::kBroken) {
      // The client must see that the answer is not whole: no last chunk, no full length.
      const bool upstreams_fault =
          pump_failure_ == Failure::kNone || pump_failure_ == Failure::kTimeout;
      if (upstreams_fault) {
        NoteUpstreamError();
        NoteFailure(upstream_->error());
      }
      if (!request_->out.empty()) co_await WriteToClient(request_->out);
      stream().Abort();
      co_return false;
    }
    const bool written = co_await WritePart(part, in_chunks);
    request_->out.clear();
    if (written) request_->access.sent += part.content.size();
    const bool whole = upstream_->body().done();
    if (written && whole) request_->end = RequestEnd::kForwarded;
    if (written && !whole) part = co_await upstream_->ReadBody(options().response_timeout);
    if (written && !whole && !left_) continue;
    // Also where the client has left: the upstream had done its part so far.
    upstreams().Answered(chosen_);
    if (left_) co_return false;
    break;
  }
  if (reusable && upstream_->idle() && asked_in_full) {
    upstream_->EndHead();
    upstreams().Keep(std::move(upstream_));
  }
  co_return how.keep_alive;
}

// The head, if it is still here, the content, and the end of the body if this was it.
Task<bool> GatewaySession::WritePart(const Http1Stream::BodyPart& part, bool in_chunks) {
  if (!in_chunks) co_return co_await WriteToClient(request_->out, part.content);
  request_->part_end.clear();
  if (!part.content.empty()) {
    request_->out.append(net::ChunkLine(part.content.size()).view());
    request_->part_end.append(net::kChunkEnd);
  }
  if (upstream_->body().done()) {
    request_->part_end.append("0\r\n");
    AppendTrailers(request_->trailers, &request_->part_end);
    request_->part_end.append("\r\n");
  }
  co_return co_await WriteToClient(request_->out, part.content, request_->part_end);
}

Task<bool> GatewaySession::WriteToClient(std::string_view first, std::string_view second,
                                         std::string_view third) {
  write_alarm_.Set(options().write_timeout);
  // Copying a little is cheaper than a write of several parts.
  if (first.data() == request_->out.data() && second.size() + third.size() <= kJoinedBytes) {
    request_->out.append(second).append(third);
    first = request_->out;
    second = third = {};
  }
  const bool written = co_await stream().Write(first, second, third);
  write_alarm_.Clear();
  if (!written) left_ = true;
  co_return !left_;
}

}  // namespace sluice::gateway
