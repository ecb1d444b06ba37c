#include "sluice/config/cors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace sluice::config {
namespace {

constexpr std::size_t kMostOrigins = 256;
constexpr std::string_view kAny = "*";

bool IsSchemeByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

// What is wrong with an origin, and what to write; an empty message: nothing.
Complaint ComplaintAbout(std::string_view origin) {
  constexpr std::string_view kEnd = "://";
  const std::size_t end = origin.find(kEnd);
  const std::string_view scheme = origin.substr(0, end);
  const bool named = end != origin.npos && !scheme.empty() && scheme[0] >= 'a' &&
                     scheme[0] <= 'z' && std::all_of(scheme.begin(), scheme.end(), IsSchemeByte);
  const std::string_view rest = named ? origin.substr(end + kEnd.size()) : std::string_view();
  const bool host = !rest.empty() && std::all_of(rest.begin(), rest.end(), [](char c) {
    return c > ' ' && c <= '~' && std::string_view("/?#@,\"*\\").find(c) == std::string_view::npos;
  });
  if (!host) {
    return {fmt::format("must have SCHEME://HOST[:PORT] or `*`, got {}", Quoted(origin)),
            "write for example `https://app.example.com`, with nothing after it"};
  }
  if (std::any_of(rest.begin(), rest.end(), [](char c) { return c >= 'A' && c <= 'Z'; })) {
    return {fmt::format("must be in lower case, got {}", Quoted(origin)),
            "browsers send an origin so, and no other would ever match"};
  }
  const bool default_port =
      (scheme == "http" && rest.ends_with(":80")) || (scheme == "https" && rest.ends_with(":443"));
  if (default_port) {
    return {fmt::format("has the scheme's own port in {}", Quoted(origin)),
            "leave it out, as browsers do"};
  }
  return {};
}

std::vector<std::string> ReadOrigins(const Value& value) {
  std::vector<std::string> origins;
  const std::vector<Value> items = value.Items();
  for (const Value& item : items) {
    const auto text = item.Text();
    if (!text) continue;
    if (*text != kAny) {
      if (const Complaint complaint = ComplaintAbout(*text); !complaint.message.empty()) {
        item.Complain(complaint.message, complaint.hint);
        continue;
      }
    } else if (items.size() > 1) {
      item.Complain("has `*` beside others", "`*` lists every origin; leave one of the two out");
    }
    origins.emplace_back(*text);
  }
  if (items.size() > kMostOrigins) {
    value.Complain(fmt::format("must have at most {} origins, got {}", kMostOrigins, items.size()));
  }
  return origins;
}

}  // namespace

CorsSettings ReadCors(const Value& value) {
  static constexpr std::array<Value::Word<bool>, 2> kPreflights = {
      {{"limit", false}, {"exempt", true}}};
  CorsSettings cors;
  Fields fields(value.node(), "`cors`", value.diagnostics());
  if (const auto origins =
          fields.Require("origins", "write for example `origins: [\"https://app.example.com\"]`")) {
    cors.origins = ReadOrigins(*origins);
  }
  if (const auto preflight = fields.Take("preflight")) {
    cors.exempt_preflight = preflight->OneOf(kPreflights).value_or(false);
  }
  if (const auto credentials = fields.Take("credentials")) {
    cors.credentials = credentials->Bool().value_or(false);
    const bool any =
        std::find(cors.origins.begin(), cors.origins.end(), kAny) != cors.origins.end();
    if (cors.credentials && any) {
      credentials->Complain("can not go with `*`: browsers refuse such an answer",
                            "list the origins");
    }
  }
  fields.Finish();
  return cors;
}

}  // namespace sluice::config
