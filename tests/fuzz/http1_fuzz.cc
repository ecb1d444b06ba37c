// Heads and bodies of HTTP/1.1, from the bytes of a connection as a gateway reads them. The first
// byte chooses: a request, a response, a response to HEAD. What is accepted must hold together.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sluice/net/http1_body.h"
#include "sluice/net/http1_parser.h"

namespace {

using namespace sluice::net;  // NOLINT: a program of one file

void Require(bool holds) {
  if (!holds) std::abort();
}

void CheckHead(const MessageHead& head, std::string_view bytes) {
  for (const Field& field : head.fields) {
    Require(!field.name.empty());
    Require(field.name.data() >= bytes.data() && field.name.data() < bytes.data() + bytes.size());
    Require(field.value.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos);
  }
  std::size_t lines = 0;
  for (const char c : head.field_lines) lines += c == '\n' ? 1 : 0;
  Require(lines == head.fields.size());
}

// Whole and byte by byte, the same content must come out.
void CheckBody(BodyFraming framing, std::string_view bytes) {
  std::string whole(bytes);
  BodyDecoder decoder;
  decoder.Start(framing);
  const BodyDecoder::Step all = decoder.Decode(whole.data(), whole.size());
  Require(all.payload <= all.consumed && all.consumed <= whole.size());

  std::string content;
  std::size_t used = 0;
  BodyDecoder slow;
  slow.Start(framing);
  for (char c : bytes) {
    const BodyDecoder::Step step = slow.Decode(&c, 1);
    content.append(&c, step.payload);
    used += step.consumed;
  }
  Require(slow.state() == decoder.state());
  Require(used == all.consumed);
  Require(content == std::string_view(whole).substr(0, all.payload));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  HeadScanner scanner;
  if (scanner.Scan(bytes, {}) != HeadScanner::State::kComplete) return 0;
  const std::string_view head_bytes = bytes.substr(0, scanner.size());
  const std::string_view rest = bytes.substr(scanner.size());
  if (data[0] % 3 == 0) {
    RequestHead head;
    if (!ParseRequestHead(head_bytes, &head).ok()) return 0;
    Require(head.path.front() == '/' || head.path == "*");
    Require(head.minor_version == 0 || !head.host.empty());
    Require(head.framing.kind != BodyFraming::Kind::kUntilClose);
    CheckHead(head, head_bytes);
    CheckBody(head.framing, rest);
  } else {
    ResponseHead head;
    if (!ParseResponseHead(head_bytes, data[0] % 3 == 1, &head).ok()) return 0;
    CheckHead(head, head_bytes);
    CheckBody(head.framing, rest);
  }
  return 0;
}
