// A connection that speaks HTTP/1.1, seen from either end: heads and bodies as they come in.
//
//   ReadHead()  ... head_bytes() ...  StartBody(framing)  ReadBody() ... ended  ->  ReadHead()
//
// The bytes of a head stay where they are until the body's first ReadBody() or EndHead(); views
// into them are good until then. What has arrived behind a message waits for its turn in the
// buffer, so that pipelined requests are served in order.
//
// Back-pressure: a body is read only when asked for, at most kBodyBytes at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/net/http1_body.h"
#include "sluice/net/http1_parser.h"
#include "sluice/net/stream.h"

namespace sluice::net {

class Http1Stream : public Stream {
 public:
  static constexpr std::size_t kFirstBytes = std::size_t{4} * 1024;  // of an idle connection
  static constexpr std::size_t kBodyBytes = std::size_t{64} * 1024;

  enum class HeadState : std::uint8_t {
    kComplete,  // head_bytes() holds it
    kEnded,     // the connection ended, or a deadline passed, before or within a head; within one
                // (timed_out() and not idle()) the peer can still be told
    kBad,       // problem() says what is wrong
  };
  struct BodyPart {
    enum class State : std::uint8_t { kMore, kEnded, kBroken };
    std::string_view content;  // good until the next call; empty only at the end
    State state = State::kMore;
  };

  Http1Stream(EventLoop& loop, Socket socket) : Stream(loop, std::move(socket)) {}

  // Waits until a head is complete. `head_time` counts from the first byte that is there or
  // arrives, on top of whatever deadline is set for that first byte.
  Task<HeadState> ReadHead(const HeadLimits& limits, Duration head_time);
  [[nodiscard]] std::string_view head_bytes() const { return buffer_.view().substr(0, head_size_); }
  [[nodiscard]] const HeadProblem& problem() const { return scanner_.problem(); }

  // Lets go of the head.
  void EndHead();

  void StartBody(BodyFraming framing) { body_.Start(framing); }
  // Of the body that was started: see BodyDecoder.
  void KeepTrailers(std::string* lines, std::size_t max_bytes) {
    body_.KeepTrailers(lines, max_bytes);
  }
  [[nodiscard]] const BodyDecoder& body() const { return body_; }

  // The part of the body that has arrived already, empty with kMore if none has. Does not wait.
  [[nodiscard]] BodyPart NextArrivedPart();
  // The next part. `part_time` bounds the whole wait for it: framing that comes drop by drop does
  // not put it off. When it has passed the part is kBroken and timed_out() holds, and the peer can
  // still be told.
  Task<BodyPart> ReadBody(Duration part_time);

  // Reads the rest of the body, within `time` in all, and forgets it. False when that would take
  // longer, or more than `max_bytes`, or broke off: then the connection cannot be used again.
  Task<bool> SkipBody(std::size_t max_bytes, Duration time);

  // Closes the sending side and takes in, for at most `patience`, what the peer is still sending. A
  // plain close would answer that with a reset, which can overtake and destroy our last answer.
  Task<void> CloseGently(Duration patience);

  // Nothing of the next message has arrived: no byte is left over.
  [[nodiscard]] bool idle() const { return buffer_.size() == head_size_ + part_size_; }

  // The buffer, for whoever takes the connection over; head and parts must be let go of before.
  [[nodiscard]] ReadBuffer& buffer() { return buffer_; }

 private:
  bool SkipEmptyLines();
  // As ReadBody(), under the deadline that is set.
  Task<BodyPart> AwaitPart();

  ReadBuffer buffer_{kFirstBytes};
  HeadScanner scanner_;
  BodyDecoder body_;
  std::size_t head_size_ = 0;  // at the front of the buffer, while a head is held
  std::size_t part_size_ = 0;  // likewise of the body's part that was given out, as it arrived
};

}  // namespace sluice::net
