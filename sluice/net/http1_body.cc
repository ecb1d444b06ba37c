#include "sluice/net/http1_body.h"

#include <algorithm>
#include <cstring>

#include "sluice/base/ascii.h"

namespace sluice::net {
namespace {

constexpr std::uint32_t kMaxSizeDigits = 15;  // 2^60 bytes: more is damage, and never overflows
constexpr std::uint32_t kMaxExtensionBytes = 1024;
constexpr std::size_t kMaxTrailerBytes = std::size_t{16} * 1024;

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

}  // namespace

void BodyDecoder::Start(BodyFraming framing) {
  framing_ = framing;
  state_ = framing.has_body() ? State::kMore : State::kDone;
  at_ = At::kSize;
  left_ = framing.kind == BodyFraming::Kind::kLength ? framing.length : 0;
  digits_ = 0;
  extra_ = 0;
  max_trailer_bytes_ = kMaxTrailerBytes;
  trailers_ = nullptr;
}

void BodyDecoder::KeepTrailers(std::string* lines, std::size_t max_bytes) {
  trailers_ = lines;
  max_trailer_bytes_ = max_bytes;
}

BodyDecoder::Step BodyDecoder::Decode(char* data, std::size_t size) {
  if (state_ != State::kMore) return {};
  if (framing_.kind == BodyFraming::Kind::kChunked) return DecodeChunked(data, size);
  if (framing_.kind == BodyFraming::Kind::kUntilClose) return {size, size};
  const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(size, left_));
  left_ -= taken;
  if (left_ == 0) state_ = State::kDone;
  return {taken, taken};
}

void BodyDecoder::OnEndOfInput() {
  if (state_ != State::kMore) return;
  state_ = framing_.kind == BodyFraming::Kind::kUntilClose ? State::kDone : State::kBad;
}

BodyDecoder::Step BodyDecoder::DecodeChunked(char* data, std::size_t size) {
  Step step;
  while (step.consumed < size && state_ == State::kMore) {
    if (at_ != At::kData) {
      TakeFramingByte(data[step.consumed++]);
      continue;
    }
    const auto taken =
        static_cast<std::size_t>(std::min<std::uint64_t>(size - step.consumed, left_));
    if (step.payload != step.consumed) {
      std::memmove(data + step.payload, data + step.consumed, taken);
    }
    step.payload += taken;
    step.consumed += taken;
    left_ -= taken;
    if (left_ == 0) at_ = At::kDataCr;
  }
  return step;
}

// The end of a size's digits, seen at the byte that is none.
void BodyDecoder::OnSizeEnd(char c) {
  if (digits_ == 0) {
    state_ = State::kBad;
  } else if (c == '\r') {
    at_ = At::kSizeLf;
  } else if (c == ';') {
    at_ = At::kExtension;
    extra_ = 0;
  } else {
    state_ = State::kBad;
  }
}

void BodyDecoder::TakeFramingByte(char c) {
  const auto expect = [&](char wanted, At next) {
    if (c == wanted) {
      at_ = next;
    } else {
      state_ = State::kBad;
    }
  };
  switch (at_) {
    case At::kSize:
      if (const int digit = HexValue(c); digit >= 0) {
        left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
        if (++digits_ > kMaxSizeDigits) state_ = State::kBad;
      } else {
        OnSizeEnd(c);
      }
      break;
    case At::kExtension:
      if (c == '\r') {
        at_ = At::kSizeLf;
      } else if (IsControl(c) || ++extra_ > kMaxExtensionBytes) {
        state_ = State::kBad;
      }
      break;
    case At::kSizeLf:
      expect('\n', left_ > 0 ? At::kData : At::kTrailerStart);
      digits_ = 0;
      extra_ = 0;
      break;
    case At::kDataCr:
      expect('\r', At::kDataLf);
      break;
    case At::kDataLf:
      expect('\n', At::kSize);
      break;
    case At::kTrailerStart:
      if (c == '\r') {
        at_ = At::kLastLf;
        break;
      }
      at_ = At::kTrailerName;
      if (c == ':') state_ = State::kBad;
      [[fallthrough]];
    case At::kTrailerName:
    case At::kTrailer:
      TakeTrailerByte(c);
      break;
    case At::kTrailerLf:
      expect('\n', At::kTrailerStart);
      if (trailers_ != nullptr) trailers_->append("\r\n");
      break;
    case At::kLastLf:
      expect('\n', At::kSize);
      if (state_ == State::kMore) state_ = State::kDone;
      break;
    case At::kData:
      break;  // content, taken by DecodeChunked
  }
}

void BodyDecoder::TakeTrailerByte(char c) {
  const bool in_value = at_ == At::kTrailer;
  if (c == '\r' && in_value) {
    at_ = At::kTrailerLf;
    return;
  }
  // Within the name, which also refuses a folded line.
  if (c == ':') at_ = At::kTrailer;
  const bool good = in_value ? !IsControl(c) : c == ':' || IsTokenChar(c);
  if (!good || ++extra_ > max_trailer_bytes_) {
    state_ = State::kBad;
  } else if (trailers_ != nullptr) {
    trailers_->push_back(c);
  }
}

ChunkLine::ChunkLine(std::size_t size) : begin_(kSize - 2) {
  constexpr std::string_view kHex = "0123456789abcdef";
  text_[kSize - 2] = '\r';
  text_[kSize - 1] = '\n';
  do {
    text_[--begin_] = kHex[size & 15U];
    size >>= 4U;
  } while (size != 0);
}

}  // namespace sluice::net
