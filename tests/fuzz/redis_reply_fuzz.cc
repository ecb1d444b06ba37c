// What a Redis server answers, or somebody in its place: whole and byte by byte the same replies
// must come out, within their bounds. The first byte chooses the bounds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sluice/net/redis_reply.h"

namespace {

using namespace sluice::net;  // NOLINT: a program of one file
using Step = RedisReplyReader::Step;

void Require(bool holds) {
  if (!holds) std::abort();
}

void Show(RedisValue value, std::size_t* elements, std::size_t* bytes, std::string* shown) {
  shown->append(std::to_string(static_cast<int>(value.kind())));
  shown->append(std::to_string(value.integer()));
  shown->append(value.text()).append(value.error());
  *bytes += value.text().size() + value.error().size();
  *elements += value.size();
  for (std::size_t i = 0; i < value.size(); ++i) Show(value[i], elements, bytes, shown);
  shown->push_back('.');
}

// All replies that come out when at most `piece` bytes are fed at once.
std::string Read(std::string_view bytes, std::size_t piece, RedisReplyReader::Bounds bounds) {
  std::string shown;
  RedisReplyReader reader(bounds);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    reader.Feed(bytes.substr(0, piece));
    RedisReply reply;
    while (reader.Next(&reply) == Step::kReply) {
      std::size_t elements = 0;
      std::size_t size = 0;
      Show(reply, &elements, &size, &shown);
      Require(elements <= bounds.elements && size <= bounds.bytes);
      shown.push_back('\n');
    }
  }
  RedisReply reply;
  if (reader.Next(&reply) == Step::kBroken) shown.append("broken");
  return shown;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t bound = std::size_t{1} << (data[0] % 20);
  const RedisReplyReader::Bounds bounds{.bytes = bound, .elements = bound};
  Require(Read(bytes, size, bounds) == Read(bytes, 1, bounds));

  // A command reads as the reply that it is like.
  std::string command;
  const std::string_view words[] = {bytes, "", bytes};
  AppendRedisCommand(words, &command);
  RedisReplyReader reader({.bytes = 2 * size});
  reader.Feed(command);
  RedisReply reply;
  Require(reader.Next(&reply) == Step::kReply && reply.size() == 3);
  Require(reply[0].text() == bytes && reply[1].text().empty() && reply[2].text() == bytes);
  return 0;
}
