// The bodies of HTTP/1.1 messages, piece by piece: takes the framing off what arrives, puts the
// chunked framing on what leaves (RFC 9112, sections 6 and 7).
//
//   arrives            4\r\nwiki\r\n5\r\npedia\r\n0\r\n\r\nGET /next ...
//   after Decode()     wikipedia...................                          payload  = 9
//                      |<------- consumed -------->|GET /next ...            consumed = 29
//
// Chunks are taken apart and made anew rather than passed on, so that extensions and odd spellings
// of a size reach nobody else. Trailers are checked, and dropped unless somebody wants to see them,
// which RFC 9110 (6.5.1) allows.
// Cost: a move of the payload to the front when chunks are small; no allocation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/net/http1_parser.h"

namespace sluice::net {

class BodyDecoder {
 public:
  enum class State : std::uint8_t {
    kMore,  // the body goes on
    kDone,  // it has ended; what follows belongs to the next message
    kBad,   // it is out of form: nothing after it can be trusted
  };
  struct Step {
    std::size_t consumed = 0;  // bytes of the input that were used up
    std::size_t payload = 0;   // bytes of content, moved to the front of the input
  };

  // Begins a body; forgets the one before.
  void Start(BodyFraming framing);

  // From here to the body's end, trailers are appended to `*lines`, each with its CRLF, rather than
  // dropped; more than `max_bytes` of them are bad.
  void KeepTrailers(std::string* lines, std::size_t max_bytes);

  // Takes in `size` bytes at `data`, which may hold less than the body or more.
  // Consumes all of them unless the body ends or is bad.
  [[nodiscard]] Step Decode(char* data, std::size_t size);

  // The connection ended. With kUntilClose that is the body's end, otherwise it is cut off.
  void OnEndOfInput();

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool done() const { return state_ == State::kDone; }
  [[nodiscard]] bool bad() const { return state_ == State::kBad; }

  // Bytes still to come, where Content-Length tells; else 0.
  [[nodiscard]] std::uint64_t remaining() const {
    return framing_.kind == BodyFraming::Kind::kLength ? left_ : 0;
  }

 private:
  enum class At : std::uint8_t {
    kSize,
    kSizeLf,
    kExtension,
    kData,
    kDataCr,
    kDataLf,
    kTrailerStart,
    kTrailerName,
    kTrailer,
    kTrailerLf,
    kLastLf,
  };

  Step DecodeChunked(char* data, std::size_t size);
  void TakeFramingByte(char c);
  void OnSizeEnd(char c);
  void TakeTrailerByte(char c);

  BodyFraming framing_;
  State state_ = State::kDone;
  At at_ = At::kSize;
  std::uint64_t left_ = 0;    // of the body, or of the chunk
  std::uint32_t digits_ = 0;  // of the chunk's size
  std::size_t extra_ = 0;     // bytes of this chunk's extension, or of all trailers
  std::size_t max_trailer_bytes_ = 0;
  std::string* trailers_ = nullptr;  // null: dropped
};

// The line in front of a chunk of `size` content bytes, in memory of its own. A chunk is this line,
// the content, and kChunkEnd; the body ends with kLastChunk.
class ChunkLine {
 public:
  explicit ChunkLine(std::size_t size);
  [[nodiscard]] std::string_view view() const { return {text_.data() + begin_, kSize - begin_}; }

 private:
  static constexpr std::size_t kSize = 18;  // 16 digits and CRLF
  std::array<char, kSize> text_;
  std::size_t begin_;
};

inline constexpr std::string_view kChunkEnd = "\r\n";
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace sluice::net
