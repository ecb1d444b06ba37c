#include "sluice/net/redis_reply.h"

#include <hiredis/hiredis.h>

#include <array>
#include <cassert>
#include <charconv>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice::net {
namespace {

// More than any line takes that is no text: a type, a number, two ends of line.
constexpr std::size_t kLineBytes = 64;

RedisReplyReader::Room& RoomOf(const redisReadTask* task) {
  return *static_cast<RedisReplyReader::Room*>(task->privdata);
}

bool Take(std::size_t size, std::size_t* left, bool* exceeded) {
  if (size > *left) *exceeded = true;
  if (*exceeded) return false;
  *left -= size;
  return true;
}

// hiredis' own functions behind our bounds: it would believe an array of 2^31 elements, and ask for
// their memory before the first has come. Null is "out of memory" to it.
const redisReplyObjectFunctions& Theirs() {
  static const redisReplyObjectFunctions theirs = [] {
    redisReader* any = ::redisReaderCreate();
    if (any == nullptr) std::terminate();  // no memory
    const redisReplyObjectFunctions functions = *any->fn;
    ::redisReaderFree(any);
    return functions;
  }();
  return theirs;
}

void* CreateString(const redisReadTask* task, char* text, std::size_t size) {
  RedisReplyReader::Room& room = RoomOf(task);
  if (!Take(size, &room.left.bytes, &room.exceeded)) return nullptr;
  return Theirs().createString(task, text, size);
}

void* CreateArray(const redisReadTask* task, int size) {
  RedisReplyReader::Room& room = RoomOf(task);
  const auto elements = static_cast<std::size_t>(size);
  if (!Take(elements, &room.left.elements, &room.exceeded)) return nullptr;
  return Theirs().createArray(task, size);
}

redisReplyObjectFunctions* Ours() {
  static redisReplyObjectFunctions ours = [] {
    redisReplyObjectFunctions functions = Theirs();
    functions.createString = CreateString;
    functions.createArray = CreateArray;
    return functions;
  }();
  return &ours;
}

void AppendHeader(char type, std::size_t size, std::string* out) {
  std::array<char, 24> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), size);
  assert(error == std::errc());
  out->push_back(type);
  out->append(digits.data(), end);
  out->append("\r\n");
}

}  // namespace

RedisKind RedisValue::kind() const {
  if (value_ == nullptr) return RedisKind::kNil;
  switch (value_->type) {
    case REDIS_REPLY_STRING:
      return RedisKind::kText;
    case REDIS_REPLY_STATUS:
      return RedisKind::kStatus;
    case REDIS_REPLY_INTEGER:
      return RedisKind::kInteger;
    case REDIS_REPLY_ARRAY:
      return RedisKind::kArray;
    case REDIS_REPLY_ERROR:
      return RedisKind::kError;
    default:
      return RedisKind::kNil;
  }
}

std::int64_t RedisValue::integer() const {
  return kind() == RedisKind::kInteger ? std::int64_t{value_->integer} : 0;
}

std::string_view RedisValue::text() const {
  const RedisKind is = kind();
  if (is != RedisKind::kText && is != RedisKind::kStatus) return {};
  return {value_->str, value_->len};
}

std::string_view RedisValue::error() const {
  if (!is_error()) return {};
  return {value_->str, value_->len};
}

std::string_view RedisValue::error_code() const {
  const std::string_view whole = error();
  return whole.substr(0, whole.find(' '));
}

std::size_t RedisValue::size() const { return is_array() ? value_->elements : 0; }

RedisValue RedisValue::operator[](std::size_t index) const {
  return index < size() ? RedisValue(value_->element[index]) : RedisValue();
}

RedisReply& RedisReply::operator=(RedisReply&& other) noexcept {
  std::swap(value_, other.value_);
  return *this;
}

RedisReply::~RedisReply() {
  if (value_ != nullptr) ::freeReplyObject(const_cast<redisReply*>(value_));
}

RedisReplyReader::RedisReplyReader(Bounds bounds)
    : bounds_(bounds),
      room_(std::make_unique<Room>(Room{.left = bounds})),
      reader_(::redisReaderCreateWithFunctions(Ours())) {
  if (reader_ == nullptr) std::terminate();  // no memory
  reader_->privdata = room_.get();
}

RedisReplyReader::~RedisReplyReader() { ::redisReaderFree(reader_); }

void RedisReplyReader::Feed(std::string_view bytes) {
  if (why_.empty()) static_cast<void>(::redisReaderFeed(reader_, bytes.data(), bytes.size()));
}

RedisReplyReader::Step RedisReplyReader::Next(RedisReply* reply) {
  if (!why_.empty()) return Step::kBroken;
  void* next = nullptr;
  if (::redisReaderGetReply(reader_, &next) != REDIS_OK) {
    if (room_->exceeded) return Break("a reply is larger than allowed");
    return Break(reader_->errstr);
  }
  if (next == nullptr) {
    // A text or a line of which too much has come, though not all.
    const bool too_large = reader_->len - reader_->pos > room_->left.bytes + kLineBytes;
    return too_large ? Break("a reply is larger than allowed") : Step::kMore;
  }
  *room_ = {.left = bounds_};
  *reply = RedisReply(static_cast<redisReply*>(next));
  return Step::kReply;
}

RedisReplyReader::Step RedisReplyReader::Break(std::string why) {
  why_ = why.empty() ? "no reply of Redis" : std::move(why);
  return Step::kBroken;
}

void AppendRedisCommand(std::span<const std::string_view> words, std::string* out) {
  assert(!words.empty());
  AppendHeader('*', words.size(), out);
  for (const std::string_view word : words) {
    AppendHeader('$', word.size(), out);
    out->append(word).append("\r\n");
  }
}

}  // namespace sluice::net
