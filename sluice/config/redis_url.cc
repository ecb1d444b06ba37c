#include "sluice/config/redis_url.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "absl/strings/str_cat.h"
#include "sluice/base/ascii.h"
#include "sluice/base/ip.h"

namespace sluice::config {
namespace {

constexpr std::uint16_t kDefaultPort = 6379;

absl::Status Wrong(std::string_view what) {
  return absl::InvalidArgumentError(absl::string_view(what.data(), what.size()));
}

bool IsVisible(char c) { return c > ' ' && c <= '~'; }

// A part in which %XX stands for a byte. Nothing where a % is not followed by two hex digits, or
// stands for a NUL, which neither a path nor a password can have.
std::optional<std::string> Unescaped(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = HexValue(text[i + 1]);
    const int low = HexValue(text[i + 2]);
    if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
    bytes.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return bytes;
}

void AppendEscaped(std::string_view text, std::string_view keep, std::string* out) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : text) {
    if (IsLetter(c) || IsDigit(c) || keep.find(c) != std::string_view::npos) {
      out->push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out->append({'%', kDigits[byte / 16], kDigits[byte % 16]});
    }
  }
}

// Digits alone, at most `max`.
std::optional<std::uint16_t> Number(std::string_view digits) {
  std::uint16_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (digits.empty() || error != std::errc() || stop != end) return std::nullopt;
  return number;
}

absl::Status ReadUser(std::string_view text, RedisUrl* url) {
  const std::size_t colon = text.find(':');
  const std::string_view user = text.substr(0, colon);
  const std::string_view password = colon == text.npos ? "" : text.substr(colon + 1);
  if (text.find_first_of("/?#@") != text.npos || password.find(':') != password.npos) {
    return Wrong("in user and password : / ? # @ are written as %3A %2F %3F %23 %40");
  }
  if (colon == text.npos ? user.empty() : password.empty()) {
    return Wrong("before the @ stands user, user:password or :password; leave out what is empty");
  }
  const auto user_bytes = Unescaped(user);
  const auto password_bytes = Unescaped(password);
  if (!user_bytes || !password_bytes) {
    return Wrong(
        "in user and password a % is followed by two hex digits other than 00; write %25 for %");
  }
  url->user = *user_bytes;
  url->password = *password_bytes;
  return absl::OkStatus();
}

bool IsHostName(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '.' || c == '-' || c == '_';
  });
}

absl::Status ReadHost(std::string_view text, RedisUrl* url) {
  std::string_view port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    const std::string_view inside = text.substr(1, close == text.npos ? 0 : close - 1);
    const auto address = IpAddress::Parse(inside);
    const std::string_view after = close == text.npos ? "" : text.substr(close + 1);
    if (!address || address->is_v4() || !(after.empty() || after.starts_with(':'))) {
      return Wrong("in the brackets stands an IPv6 address, after them :PORT or nothing");
    }
    url->host = inside;
    has_port = !after.empty();
    port = after.substr(has_port ? 1 : 0);
  } else {
    const std::size_t colon = text.find(':');
    url->host = text.substr(0, colon);
    has_port = colon != text.npos;
    port = has_port ? text.substr(colon + 1) : "";
    if (!IsHostName(url->host)) {
      return Wrong("after the @ or the // stands a host: a name, an IPv4 address or [an IPv6 one]");
    }
  }
  const std::optional<std::uint16_t> number = has_port ? Number(port) : kDefaultPort;
  if (!number || *number == 0) return Wrong("the port is a number from 1 to 65535");
  url->port = *number;
  return absl::OkStatus();
}

absl::Status ReadDatabase(std::string_view digits, RedisUrl* url) {
  const auto number = Number(digits);
  if (!number) return Wrong("the database is a number from 0 to 65535");
  url->database = *number;
  return absl::OkStatus();
}

// What follows the user: HOST[:PORT][/DATABASE].
absl::Status ReadServer(std::string_view text, RedisUrl* url) {
  if (text.find_first_of("?#") != text.npos) {
    return Wrong("after the database nothing follows: no ? and no #");
  }
  const std::size_t slash = text.find('/');
  absl::Status status = ReadHost(text.substr(0, slash), url);
  if (status.ok() && slash != text.npos && slash + 1 < text.size()) {
    status = ReadDatabase(text.substr(slash + 1), url);
  }
  return status;
}

// /PATH[?db=N]
absl::Status ReadSocket(std::string_view text, RedisUrl* url) {
  if (!text.starts_with('/')) {
    return Wrong("the path of a Unix socket begins with /: unix:///run/redis.sock");
  }
  const std::size_t mark = text.find('?');
  const std::string_view query = mark == text.npos ? "db=0" : text.substr(mark + 1);
  if (text.find('#') != text.npos || !query.starts_with("db=")) {
    return Wrong("after the path nothing follows but ?db=N");
  }
  const auto path = Unescaped(text.substr(0, mark));
  if (!path) {
    return Wrong("in the path a % is followed by two hex digits other than 00; write %25 for %");
  }
  constexpr std::size_t kMaxPath = 107;  // what an address of a socket holds
  if (path->size() == 1 || path->size() > kMaxPath) {
    return Wrong("the path of a Unix socket has at most 107 bytes, and at least one after the /");
  }
  url->unix_socket = *path;
  return ReadDatabase(query.substr(3), url);
}

}  // namespace

absl::StatusOr<RedisUrl> ParseRedisUrl(std::string_view text) {
  if (!std::all_of(text.begin(), text.end(), IsVisible)) {
    return Wrong("a URL has no blanks and is ASCII; other bytes are written as %XX");
  }
  RedisUrl url;
  const std::size_t colon = text.find("://");
  const std::string_view scheme = text.substr(0, colon == text.npos ? 0 : colon);
  const bool is_unix = scheme == "unix";
  url.tls = scheme == "rediss";
  if (!is_unix && !url.tls && scheme != "redis") {
    return Wrong("the URL of a Redis server begins with redis://, rediss:// or unix://");
  }
  std::string_view rest = text.substr(colon + 3);
  const std::size_t at = rest.rfind('@');
  if (at != rest.npos) {
    if (absl::Status status = ReadUser(rest.substr(0, at), &url); !status.ok()) return status;
    rest.remove_prefix(at + 1);
  }
  const absl::Status status = is_unix ? ReadSocket(rest, &url) : ReadServer(rest, &url);
  if (!status.ok()) return status;
  return url;
}

std::string ToString(const RedisUrl& url) {
  const bool is_unix = !url.unix_socket.empty();
  std::string text = is_unix ? "unix://" : url.tls ? "rediss://" : "redis://";
  if (!url.user.empty()) {
    AppendEscaped(url.user, "-._~", &text);
    text.push_back('@');
  }
  if (is_unix) {
    AppendEscaped(url.unix_socket, "/-._~", &text);
    if (url.database != 0) absl::StrAppend(&text, "?db=", url.database);
    return text;
  }
  const bool v6 = url.host.find(':') != std::string::npos;
  absl::StrAppend(&text, v6 ? "[" : "", url.host, v6 ? "]" : "");
  if (url.port != kDefaultPort) absl::StrAppend(&text, ":", url.port);
  if (url.database != 0) absl::StrAppend(&text, "/", url.database);
  return text;
}

}  // namespace sluice::config
