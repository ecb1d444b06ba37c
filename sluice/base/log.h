// The process' log: one line per event, on standard error, for a person or for a machine.
//
//   log::Info("listening", {{"door", "gateway"}, {"address", "127.0.0.1:8080"}});
//
//   text   2026-11-30T13:05:27.123Z info    listening door=gateway address=127.0.0.1:8080
//   json   {"time":"2026-11-30T13:05:27.123Z","level":"info","message":"listening","door":...}
//
// A message is a constant phrase; what varies stands in fields, so that lines can be counted by
// message. Values are escaped in both formats: one event is one line whatever a client sent.
// Identities and secrets do not belong here: whoever logs passes a hash, or nothing.
//
// The log is the one thing of the process that is set once, at start, and reached from everywhere.
// Safe from any thread. A line below the level costs one comparison, apart from its fields.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

namespace sluice::log {

enum class Level : std::uint8_t { kDebug, kInfo, kWarning, kError, kOff };
enum class Format : std::uint8_t { kText, kJson };

// A name and a value that lives at least as long as the call. Strings are quoted where needed,
// numbers and truth values are not.
class Field {
 public:
  Field(std::string_view name, std::string_view value) : name_(name), text_(value) {}
  Field(std::string_view name, const char* value) : name_(name), text_(value) {}
  Field(std::string_view name, const std::string& value) : name_(name), text_(value) {}
  Field(std::string_view name, bool value)
      : name_(name), text_(value ? "true" : "false"), bare_(true) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Field(std::string_view name, T value)
      : name_(name), number_(std::to_string(value)), bare_(true) {}

  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] std::string_view value() const { return number_.empty() ? text_ : number_; }
  [[nodiscard]] bool bare() const { return bare_; }  // written without quotes in JSON

 private:
  std::string_view name_;
  std::string_view text_;
  std::string number_;  // short: stays inside the object
  bool bare_ = false;
};

using Fields = std::initializer_list<Field>;

// Sets level and format from now on. Before the first call: text, from kInfo.
void Configure(Level level, Format format);

// Sends whole lines, without the newline, to `sink` instead of standard error; null goes back.
// The sink is called under a lock. For tests and for embedders.
void SetSink(std::function<void(std::string_view line)> sink);

[[nodiscard]] bool Enabled(Level level);
void Write(Level level, std::string_view message, Fields fields = {});

inline void Debug(std::string_view message, Fields fields = {}) {
  Write(Level::kDebug, message, fields);
}
inline void Info(std::string_view message, Fields fields = {}) {
  Write(Level::kInfo, message, fields);
}
inline void Warning(std::string_view message, Fields fields = {}) {
  Write(Level::kWarning, message, fields);
}
inline void Error(std::string_view message, Fields fields = {}) {
  Write(Level::kError, message, fields);
}

// How an event reads, apart from its time and level. Pure; Write() is built on these.
[[nodiscard]] std::string TextLine(std::string_view message, Fields fields);
[[nodiscard]] std::string JsonMembers(std::string_view message, Fields fields);

}  // namespace sluice::log
