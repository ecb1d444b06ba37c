// What a Redis server answers, and how a command is written (RESP, version 2).
//
//   std::string bytes;
//   const std::string_view command[] = {"MGET", "a", "b"};
//   AppendRedisCommand(command, &bytes);            // *3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n
//   ...
//   RedisReplyReader reader;
//   reader.Feed(received);                          // cut at any byte
//   RedisReply reply;
//   while (reader.Next(&reply) == RedisReplyReader::Step::kReply) {
//     for (std::size_t i = 0; i < reply.size(); ++i) Use(reply[i].text());
//   }
//
// hiredis parses. It knows the kinds of version 2 alone: a server speaks version 3 only to who asks
// for it by HELLO, which we never do.
//
// A value asked for what it is not says so by being empty: text() of an integer is "", integer() of
// a text 0, [] beyond the end a nil. So a reply of another shape than expected is no danger, only
// a value that the caller finds missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct redisReply;   // hiredis'
struct redisReader;  // hiredis'

namespace sluice::net {

enum class RedisKind : std::uint8_t { kNil, kText, kStatus, kInteger, kArray, kError };

// A look at a reply or at a part of one; good as long as the reply lives. Copied freely.
class RedisValue {
 public:
  RedisValue() = default;  // a nil

  [[nodiscard]] RedisKind kind() const;
  [[nodiscard]] bool is_error() const { return kind() == RedisKind::kError; }
  [[nodiscard]] bool is_array() const { return kind() == RedisKind::kArray; }

  [[nodiscard]] std::int64_t integer() const;
  // Of a text or a status; any bytes.
  [[nodiscard]] std::string_view text() const;
  // What the server says of what went wrong: "NOSCRIPT No matching script."
  [[nodiscard]] std::string_view error() const;
  // Its first word, by which errors are told apart: "NOSCRIPT".
  [[nodiscard]] std::string_view error_code() const;

  // The elements of an array.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] RedisValue operator[](std::size_t index) const;

 protected:
  explicit RedisValue(const redisReply* value) : value_(value) {}

  const redisReply* value_ = nullptr;
};

// A whole reply, which owns all of its parts.
class RedisReply : public RedisValue {
 public:
  RedisReply() = default;  // a nil
  explicit RedisReply(redisReply* owned) : RedisValue(owned) {}
  RedisReply(RedisReply&& other) noexcept : RedisValue(other.value_) { other.value_ = nullptr; }
  RedisReply& operator=(RedisReply&& other) noexcept;
  ~RedisReply();
};

// Parses what comes from one connection. What has come but is not parsed is kept inside.
class RedisReplyReader {
 public:
  // Of one reply, all its parts together. A server that goes beyond is broken, or none of ours.
  // Arrays lie seven deep at most.
  struct Bounds {
    std::size_t bytes = std::size_t{1} << 20;  // of texts; what is kept is a little more
    std::size_t elements = std::size_t{1} << 16;
  };
  enum class Step : std::uint8_t {
    kReply,
    kMore,    // nothing whole is left
    kBroken,  // what came is no reply, or too large a one; nothing will be read any more
  };

  RedisReplyReader() : RedisReplyReader(Bounds{}) {}
  explicit RedisReplyReader(Bounds bounds);
  RedisReplyReader(const RedisReplyReader&) = delete;
  RedisReplyReader& operator=(const RedisReplyReader&) = delete;
  ~RedisReplyReader();

  // Call Next() until it has no more before feeding again.
  void Feed(std::string_view bytes);
  // `reply` changes with kReply alone.
  [[nodiscard]] Step Next(RedisReply* reply);
  // After kBroken, in words for the log.
  [[nodiscard]] const std::string& why() const { return why_; }

  // What is left of the bounds for the reply that is being read. For the parser's functions.
  struct Room {
    Bounds left;
    bool exceeded = false;
  };

 private:
  Step Break(std::string why);

  const Bounds bounds_;
  const std::unique_ptr<Room> room_;
  redisReader* const reader_;  // owned
  std::string why_;
};

// Appends a command of these words (at least one; any bytes) to `out`.
void AppendRedisCommand(std::span<const std::string_view> words, std::string* out);

}  // namespace sluice::net
