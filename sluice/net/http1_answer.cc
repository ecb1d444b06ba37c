#include "sluice/net/http1_answer.h"

#include <algorithm>
#include <array>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <ostream>  // which the header above needs and does not bring

#include "sluice/base/utf8.h"

namespace sluice::net {
namespace {

using namespace std::string_view_literals;

void WriteStatusLine(int status, std::string* out) {
  out->append("HTTP/1.1 "sv);
  AppendNumber(static_cast<std::size_t>(status), out);
  out->append(" "sv);
  out->append(ReasonPhrase(status));
  out->append("\r\n"sv);
}

// Those of the classes that there are, written once.
class StatusLines {
 public:
  StatusLines() {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      WriteStatusLine(kFirst + static_cast<int>(i), &lines_[i]);
    }
  }
  // Null for a status of no class.
  [[nodiscard]] const std::string* Find(int status) const {
    const auto index = static_cast<std::size_t>(status - kFirst);
    return index < lines_.size() ? &lines_[index] : nullptr;
  }

 private:
  static constexpr int kFirst = 100;
  std::array<std::string, 500> lines_;
};

// The field Date of this second: "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n". Good until the thread's
// next call.
std::string_view DateLine() {
  // Written anew once a second, for each thread.
  struct Text {
    std::time_t second = -1;
    std::array<char, 48> bytes{};
    std::size_t size = 0;
  };
  thread_local Text text;
  const std::time_t now = std::time(nullptr);
  if (now != text.second) {
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    // strftime in the C locale, which a process has unless it asks for another.
    text.size = std::strftime(text.bytes.data(), text.bytes.size(),
                              "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
    text.second = now;
  }
  return {text.bytes.data(), text.size};
}

// What stands for itself in a JSON string.
bool IsPlain(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

}  // namespace

std::string_view ReasonPhrase(int status) {
  namespace http = boost::beast::http;
  if (status == 429) return "Too Many Requests";
  const http::status known = http::int_to_status(static_cast<unsigned>(status));
  if (known == http::status::unknown) return "Unknown";
  const auto reason = http::obsolete_reason(known);
  return {reason.data(), reason.size()};
}

void AppendStatusLine(int status, std::string* out) {
  static const StatusLines lines;
  if (const std::string* line = lines.Find(status)) {
    out->append(*line);
  } else {
    WriteStatusLine(status, out);
  }
}

void AppendField(std::string_view name, std::string_view value, std::string* out) {
  out->append(name);
  out->append(": "sv);
  out->append(value);
  out->append("\r\n"sv);
}

void AppendField(std::string_view name, std::size_t value, std::string* out) {
  out->append(name);
  out->append(": "sv);
  AppendNumber(value, out);
  out->append("\r\n"sv);
}

void AppendAnswer(const Answer& answer, bool keep_alive, bool without_body, std::string* out) {
  AppendStatusLine(answer.status, out);
  out->append(DateLine());
  if (!answer.body.empty()) AppendField("Content-Type", answer.content_type, out);
  AppendField("Content-Length", answer.body.size(), out);
  out->append(answer.more_fields);
  out->append(keep_alive ? "Connection: keep-alive\r\n\r\n"sv : "Connection: close\r\n\r\n"sv);
  if (!without_body) out->append(answer.body);
}

Answer ProblemAnswer(int status, std::string_view detail) {
  Answer answer{.status = status, .content_type = "application/problem+json"};
  answer.body = R"({"type":"about:blank","title":)";
  AppendJsonString(ReasonPhrase(status), &answer.body);
  answer.body.append(R"(,"status":)");
  AppendNumber(static_cast<std::size_t>(status), &answer.body);
  answer.body.append(R"(,"detail":)");
  AppendJsonString(detail, &answer.body);
  answer.body.append("}\n");
  return answer;
}

void AppendJsonString(std::string_view text, std::string* out) {
  out->push_back('"');
  AppendJsonText(text, out);
  out->push_back('"');
}

void AppendJsonText(std::string_view text, std::string* out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  while (!text.empty()) {
    const auto special = std::find_if_not(text.begin(), text.end(), IsPlain);
    const auto plain = static_cast<std::size_t>(special - text.begin());
    out->append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t length = Utf8Length(text);
    const char c = text.front();
    if (length == 0) {
      out->append("\xef\xbf\xbd"sv);
    } else if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out->append("\\u00"sv);
      out->push_back(kHex[static_cast<unsigned char>(c) >> 4U]);
      out->push_back(kHex[static_cast<unsigned char>(c) & 15U]);
    } else {
      out->append(text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

void AppendNumber(std::size_t value, std::string* out) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out->append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

}  // namespace sluice::net
