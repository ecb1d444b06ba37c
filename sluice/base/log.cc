#include "sluice/base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

namespace sluice::log {
namespace {

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      break;
  }
  return spdlog::level::off;
}

class FunctionSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(std::function<void(std::string_view)> write) : write_(std::move(write)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view text(line.data(), line.size());
    if (text.ends_with('\n')) text.remove_suffix(1);
    write_(text);
  }
  void flush_() override {}

  std::function<void(std::string_view)> write_;
};

// What is set, together, so that a line in the making never sees half of a change.
struct Output {
  std::shared_ptr<spdlog::logger> logger;
  Format format = Format::kText;
};

struct Shared {
  Shared() { Rebuild(); }

  void Rebuild() {
    auto next = std::make_shared<Output>();
    spdlog::sink_ptr out;
    if (sink) {
      out = std::make_shared<FunctionSink>(sink);
    } else {
      out = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    }
    next->logger = std::make_shared<spdlog::logger>("sluice", std::move(out));
    next->logger->set_level(spdlog::level::trace);  // level is checked before, in Enabled()
    next->logger->flush_on(spdlog::level::trace);
    // %! and the like are not used: the pattern only adds time and level.
    next->logger->set_pattern(format == Format::kJson
                                  ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                                  : "%Y-%m-%dT%H:%M:%S.%eZ %-7l %v",
                              spdlog::pattern_time_type::utc);
    next->format = format;
    output = std::move(next);
  }

  std::mutex mutex;
  std::atomic<Level> level{Level::kInfo};
  Format format = Format::kText;
  std::function<void(std::string_view)> sink;
  std::shared_ptr<const Output> output;
};

Shared& Instance() {
  static Shared shared;
  return shared;
}

// A control byte, or what UTF-8 does not allow there, must not reach a terminal or a JSON reader.
// Bytes outside of printable ASCII are written as \xNN in text and as \u00NN in JSON: a log is no
// place to decode what a client sent, and the line stays valid whatever the bytes are.
void AppendEscaped(std::string_view text, bool json, std::string* out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (byte >= 0x20 && byte < 0x7f) {
      out->push_back(c);
    } else {
      out->append(json ? "\\u00" : "\\x");
      out->push_back(kHex[byte >> 4U]);
      out->push_back(kHex[byte & 15U]);
    }
  }
}

bool NeedsQuotes(std::string_view value) {
  if (value.empty()) return true;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f || c == '"' || c == '=' || c == '\\') return true;
  }
  return false;
}

void AppendQuoted(std::string_view text, bool json, std::string* out) {
  out->push_back('"');
  AppendEscaped(text, json, out);
  out->push_back('"');
}

}  // namespace

std::string TextLine(std::string_view message, Fields fields) {
  std::string line;
  AppendEscaped(message, /*json=*/false, &line);
  for (const Field& field : fields) {
    line.push_back(' ');
    line.append(field.name());
    line.push_back('=');
    if (NeedsQuotes(field.value())) {
      AppendQuoted(field.value(), /*json=*/false, &line);
    } else {
      line.append(field.value());
    }
  }
  return line;
}

std::string JsonMembers(std::string_view message, Fields fields) {
  std::string line = "\"message\":";
  AppendQuoted(message, /*json=*/true, &line);
  for (const Field& field : fields) {
    line.push_back(',');
    AppendQuoted(field.name(), /*json=*/true, &line);
    line.push_back(':');
    if (field.bare()) {
      line.append(field.value());
    } else {
      AppendQuoted(field.value(), /*json=*/true, &line);
    }
  }
  return line;
}

void Configure(Level level, Format format) {
  Shared& shared = Instance();
  const std::lock_guard lock(shared.mutex);
  shared.level = level;
  shared.format = format;
  shared.Rebuild();
}

void SetSink(std::function<void(std::string_view line)> sink) {
  Shared& shared = Instance();
  const std::lock_guard lock(shared.mutex);
  shared.sink = std::move(sink);
  shared.Rebuild();
}

bool Enabled(Level level) { return level >= Instance().level.load(std::memory_order_relaxed); }

void Write(Level level, std::string_view message, Fields fields) {
  if (!Enabled(level)) return;
  std::shared_ptr<const Output> output;
  {
    Shared& shared = Instance();
    const std::lock_guard lock(shared.mutex);
    output = shared.output;
  }
  const std::string line =
      output->format == Format::kJson ? JsonMembers(message, fields) : TextLine(message, fields);
  output->logger->log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace sluice::log
