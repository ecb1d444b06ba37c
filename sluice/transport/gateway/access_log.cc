#include "sluice/transport/gateway/access_log.h"

#include <array>

#include "sluice/net/http1_answer.h"
#include "sluice/transport/gateway/escape.h"

namespace sluice::gateway {
namespace {

constexpr int kClientLeft = 499;

void AppendPadded(std::uint64_t number, std::size_t digits, std::string* out) {
  std::array<char, 20> text;
  for (std::size_t i = digits; i-- > 0; number /= 10)
    text[i] = static_cast<char>('0' + number % 10);
  out->append(text.data(), digits);
}

struct UtcTime {
  explicit UtcTime(std::chrono::milliseconds since_1970)
      : day(std::chrono::floor<std::chrono::days>(since_1970)),
        date(std::chrono::sys_days(day)),
        time(since_1970 - day) {}

  void AppendClock(std::string* out) const {
    AppendPadded(static_cast<std::uint64_t>(time.hours().count()), 2, out);
    out->push_back(':');
    AppendPadded(static_cast<std::uint64_t>(time.minutes().count()), 2, out);
    out->push_back(':');
    AppendPadded(static_cast<std::uint64_t>(time.seconds().count()), 2, out);
  }

  std::chrono::days day;
  std::chrono::year_month_day date;
  std::chrono::hh_mm_ss<std::chrono::milliseconds> time;
};

// 2026-11-30T13:05:27.123Z
void AppendIsoTime(std::chrono::milliseconds since_1970, std::string* out) {
  const UtcTime utc(since_1970);
  AppendPadded(static_cast<std::uint64_t>(static_cast<int>(utc.date.year())), 4, out);
  out->push_back('-');
  AppendPadded(static_cast<unsigned>(utc.date.month()), 2, out);
  out->push_back('-');
  AppendPadded(static_cast<unsigned>(utc.date.day()), 2, out);
  out->push_back('T');
  utc.AppendClock(out);
  out->push_back('.');
  AppendPadded(static_cast<std::uint64_t>(utc.time.subseconds().count()), 3, out);
  out->push_back('Z');
}

// 30/Nov/2026:13:05:27 +0000
void AppendLogTime(std::chrono::milliseconds since_1970, std::string* out) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const UtcTime utc(since_1970);
  AppendPadded(static_cast<unsigned>(utc.date.day()), 2, out);
  out->push_back('/');
  out->append(kMonths.substr((static_cast<unsigned>(utc.date.month()) - 1) * std::size_t{3}, 3));
  out->push_back('/');
  AppendPadded(static_cast<std::uint64_t>(static_cast<int>(utc.date.year())), 4, out);
  out->push_back(':');
  utc.AppendClock(out);
  out->append(" +0000");
}

void AppendMilliseconds(Duration length, std::string* out) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(length).count();
  net::AppendNumber(static_cast<std::size_t>(us / 1000), out);
  out->push_back('.');
  AppendPadded(static_cast<std::uint64_t>(us % 1000), 3, out);
}

// As nginx does.
void AppendCombinedText(std::string_view text, std::string* out) {
  AppendEscaped(text.substr(0, kMaxAccessText), "\\x", "\"\\", out);
}

void AppendCombinedOrDash(std::string_view text, std::string* out) {
  if (text.empty()) out->push_back('-');
  AppendCombinedText(text, out);
}

// `,"name":"text"`; null for an empty text if `or_null`.
void AppendMember(std::string_view name, std::string_view text, bool or_null, std::string* out) {
  out->append(",\"").append(name).append("\":");
  if (or_null && text.empty()) {
    out->append("null");
  } else {
    net::AppendJsonString(text.substr(0, kMaxAccessText), out);
  }
}

void AppendMember(std::string_view name, std::uint64_t number, std::string* out) {
  out->append(",\"").append(name).append("\":");
  net::AppendNumber(number, out);
}

std::string_view ProtocolOf(const AccessRequest& request) {
  if (request.method.empty()) return {};
  return request.minor_version == 0 ? "HTTP/1.0" : "HTTP/1.1";
}

void BeginCombined(const AccessRequest& request, std::string_view target, std::string* text,
                   std::string* rest) {
  text->append(request.client).append(" - - [");
  AppendLogTime(request.since_1970, text);
  text->append("] \"");
  if (request.method.empty()) {
    text->push_back('-');
  } else {
    AppendCombinedText(request.method, text);
    text->push_back(' ');
    AppendCombinedText(target, text);
    text->append(" ").append(ProtocolOf(request));
  }
  text->append("\" ");
  rest->append(" \"");
  AppendCombinedOrDash(request.referer, rest);
  rest->append("\" \"");
  AppendCombinedOrDash(request.user_agent, rest);
  rest->append("\"\n");
}

void BeginJson(const AccessRequest& request, std::string_view target, std::string* text) {
  text->append("{\"time\":\"");
  AppendIsoTime(request.since_1970, text);
  text->push_back('"');
  AppendMember("client", request.client, false, text);
  AppendMember("peer", request.peer, false, text);
  AppendMember("method", request.method, true, text);
  AppendMember("path", target, true, text);
  AppendMember("protocol", ProtocolOf(request), true, text);
  AppendMember("host", request.host, false, text);
  AppendMember("user_agent", request.user_agent, false, text);
  AppendMember("referer", request.referer, false, text);
  AppendMember("request_id", request.request_id, false, text);
}

}  // namespace

void AccessLine::Begin(const AccessLog& log, const AccessRequest& request) {
  form_ = log.form;
  text_.clear();
  rest_.clear();
  std::string_view target = request.target;
  if (!log.query) target = target.substr(0, target.find('?'));
  if (form_ == AccessForm::kCombined) {
    BeginCombined(request, target, &text_, &rest_);
  } else {
    BeginJson(request, target, &text_);
  }
}

std::string_view AccessLine::Finish(const AccessEnd& end) {
  const auto status = static_cast<std::uint64_t>(end.status == 0 ? kClientLeft : end.status);
  if (form_ == AccessForm::kCombined) {
    net::AppendNumber(status, &text_);
    text_.push_back(' ');
    net::AppendNumber(end.sent, &text_);
    text_.append(rest_);
    return text_;
  }
  AppendMember("status", status, &text_);
  AppendMember("bytes_sent", end.sent, &text_);
  AppendMember("bytes_received", end.received, &text_);
  text_.append(",\"duration_ms\":");
  AppendMilliseconds(end.duration, &text_);
  AppendMember("decision", end.decision, false, &text_);
  AppendMember("rule", end.rule, true, &text_);
  AppendMember("result", end.result, false, &text_);
  AppendMember("upstream", end.upstream, true, &text_);
  text_.append(",\"upstream_ms\":");
  if (end.upstream_time < Duration{0}) {
    text_.append("null");
  } else {
    AppendMilliseconds(end.upstream_time, &text_);
  }
  text_.append("}\n");
  return text_;
}

}  // namespace sluice::gateway
