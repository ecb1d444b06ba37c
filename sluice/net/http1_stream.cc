#include "sluice/net/http1_stream.h"

namespace sluice::net {

// RFC 9112 (2.2): empty lines in front of a request are ignored. False: a CR may yet become one.
bool Http1Stream::SkipEmptyLines() {
  while (buffer_.view().starts_with("\r\n")) buffer_.Consume(2);
  return buffer_.view() != "\r";
}

Task<Http1Stream::HeadState> Http1Stream::ReadHead(const HeadLimits& limits, Duration head_time) {
  EndHead();
  scanner_.Reset();
  const SoftDeadline soft(*this);
  bool begun = false;
  while (true) {
    if (SkipEmptyLines()) {
      switch (scanner_.Scan(buffer_.view(), limits)) {
        case HeadScanner::State::kComplete:
          head_size_ = scanner_.size();
          co_return HeadState::kComplete;
        case HeadScanner::State::kBad:
          co_return HeadState::kBad;
        case HeadScanner::State::kNeedMore:
          break;
      }
    }
    if (!begun && !buffer_.empty()) {
      begun = true;
      Set(head_time);
    }
    // The scanner refuses what is longer than the limit, so there is always room for one byte more.
    const std::size_t size = co_await Read(buffer_, limits.max_bytes + kFirstBytes);
    if (size == 0 || timed_out()) co_return HeadState::kEnded;
  }
}

void Http1Stream::EndHead() {
  buffer_.Consume(head_size_ + part_size_);
  head_size_ = 0;
  part_size_ = 0;
}

Http1Stream::BodyPart Http1Stream::NextArrivedPart() {
  EndHead();
  while (!buffer_.empty() && body_.state() == BodyDecoder::State::kMore) {
    const BodyDecoder::Step step = body_.Decode(buffer_.data(), buffer_.size());
    if (step.payload > 0) {
      part_size_ = step.consumed;
      return {{buffer_.data(), step.payload}};
    }
    buffer_.Consume(step.consumed);
  }
  if (body_.done()) return {{}, BodyPart::State::kEnded};
  if (body_.bad()) return {{}, BodyPart::State::kBroken};
  return {};
}

Task<Http1Stream::BodyPart> Http1Stream::AwaitPart() {
  const SoftDeadline soft(*this);
  while (true) {
    const BodyPart part = NextArrivedPart();
    if (!part.content.empty() || part.state != BodyPart::State::kMore) co_return part;
    const std::size_t size = co_await Read(buffer_, kBodyBytes);
    if (size == 0 && ended()) body_.OnEndOfInput();
    const bool broken = size == 0 && !body_.done();
    if (broken || timed_out()) co_return BodyPart{{}, BodyPart::State::kBroken};
  }
}

Task<Http1Stream::BodyPart> Http1Stream::ReadBody(Duration part_time) {
  BodyPart part = NextArrivedPart();
  if (!part.content.empty() || part.state != BodyPart::State::kMore) co_return part;
  Set(part_time);
  part = co_await AwaitPart();
  // The time until somebody asks for the next part is not the peer's.
  Clear();
  co_return part;
}

Task<bool> Http1Stream::SkipBody(std::size_t max_bytes, Duration time) {
  Set(time);
  std::size_t skipped = 0;
  BodyPart part;
  while (part.state == BodyPart::State::kMore) {
    if (body_.remaining() > max_bytes - skipped) co_return false;
    part = co_await AwaitPart();
    skipped += part.content.size();
    if (skipped > max_bytes) co_return false;
  }
  Clear();
  co_return part.state == BodyPart::State::kEnded;
}

Task<void> Http1Stream::CloseGently(Duration patience) {
  Set(patience);
  co_await EndWriting();
  std::size_t size = 0;
  do {
    EndHead();
    buffer_.Clear();
    size = co_await Read(buffer_, kFirstBytes);
  } while (size > 0);
}

}  // namespace sluice::net
