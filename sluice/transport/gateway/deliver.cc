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
  const bool reusable = answer_.keep_alive && asked_in_full;
  ClientHead how{.old_client = head().minor_version == 0,
                 .trailers = takes_trailers_,
                 .request_id = request_id_};
  const bool length_told = answer_.framing.kind != net::BodyFraming::Kind::kChunked &&
                           answer_.framing.kind != net::BodyFraming::Kind::kUntilClose;
  how.keep_alive = head().keep_alive && !LastAnswer() && asked_in_full && stream().body().done() &&
                   (length_told || !how.old_client);
  const bool in_chunks = SentInChunks(answer_, how);
  access_.status = answer_.status;
  out_.clear();
  AppendClientHead(answer_, how, terms_->fields, &upstream_limits_, &out_);
  terms_->fields.Append(outcome_, upstream_limits_, &out_);
  out_.append("\r\n");

  upstream_->Clear();
  upstream_->StartBody(answer_.framing);
  trailers_.clear();
  if (in_chunks && takes_trailers_) upstream_->KeepTrailers(&trailers_, limits().head.max_bytes);
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
      if (!out_.empty()) co_await WriteToClient(out_);
      stream().Abort();
      co_return false;
    }
    const bool written = co_await WritePart(part, in_chunks);
    out_.clear();
    if (written) access_.sent += part.content.size();
    const bool whole = upstream_->body().done();
    if (written && whole) end_ = RequestEnd::kForwarded;
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
  if (!in_chunks) co_return co_await WriteToClient(out_, part.content);
  part_end_.clear();
  if (!part.content.empty()) {
    out_.append(net::ChunkLine(part.content.size()).view());
    part_end_.append(net::kChunkEnd);
  }
  if (upstream_->body().done()) {
    part_end_.append("0\r\n");
    AppendTrailers(trailers_, &part_end_);
    part_end_.append("\r\n");
  }
  co_return co_await WriteToClient(out_, part.content, part_end_);
}

Task<bool> GatewaySession::WriteToClient(std::string_view first, std::string_view second,
                                         std::string_view third) {
  write_alarm_.Set(options().write_timeout);
  // Copying a little is cheaper than a write of several parts.
  if (first.data() == out_.data() && second.size() + third.size() <= kJoinedBytes) {
    out_.append(second).append(third);
    first = out_;
    second = third = {};
  }
  const bool written = co_await stream().Write(first, second, third);
  write_alarm_.Clear();
  if (!written) left_ = true;
  co_return !left_;
}

}  // namespace sluice::gateway
