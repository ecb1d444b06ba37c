#include "sluice/config/match_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "sluice/base/ascii.h"
#include "sluice/config/source_names.h"

namespace sluice::config {
namespace {

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

void ReadMethods(const Value& field, Match& match) {
  for (const Value& item : field.Items()) {
    const auto text = item.Text();
    if (!text) continue;
    if (!IsToken(*text)) {
      item.Complain(fmt::format("has {}, which is no method", Quoted(*text)));
    } else if (Upper(*text) != *text) {
      item.Complain(fmt::format("has {}; methods are compared as written", Quoted(*text)),
                    fmt::format("write `{}`", Upper(*text)));
    } else {
      match.methods.emplace_back(*text);
    }
  }
}

void ReadPaths(const Value& field, bool ignore_case, Match& match) {
  for (const Value& item : field.Items()) {
    const auto text = item.Text();
    if (!text) continue;
    auto pattern = PathPattern::Compile(*text, ignore_case);
    if (pattern.ok()) {
      match.paths.push_back(*std::move(pattern));
    } else {
      const auto message = pattern.status().message();
      item.diagnostics().Error(item.node().location,
                               fmt::format("`path` {}", std::string(message)));
    }
  }
}

void ReadHosts(const Value& field, Match& match) {
  for (const Value& item : field.Items()) {
    const auto text = item.Text();
    if (!text) continue;
    std::string buffer;
    const std::string_view host = NormalHost(*text, buffer);
    const std::string_view name = host.starts_with("*.") ? host.substr(2) : host;
    const bool address = name.starts_with('[') && name.ends_with(']');
    if (name.empty() || name.find_first_of("*/ \t@") != name.npos ||
        (!address && name.find(':') != name.npos)) {
      item.Complain(fmt::format("has {}, which is no host", Quoted(*text)),
                    "write `api.example.com`, or `*.example.com` for all below it");
    } else if (host.size() + 1 < text->size()) {  // a dot at the end may go
      item.Complain(fmt::format("has {} with a port; ports are not compared", Quoted(*text)),
                    fmt::format("write `{}`", host));
    } else {
      match.hosts.emplace_back(host);
    }
  }
}

void ReadClients(const Value& field, Match& match) {
  for (const Value& item : field.Items()) {
    const auto text = item.Text();
    if (!text) continue;
    const auto range = IpPrefix::Parse(*text);
    if (range.ok()) {
      match.clients.push_back(*range);
    } else {
      const auto message = range.status().message();
      item.diagnostics().Error(item.node().location, fmt::format("`ip` {}", std::string(message)));
    }
  }
}

bool CheckHeaderName(const Value& value, std::string_view name) {
  if (IsToken(name)) return true;
  value.Complain(fmt::format("has {}, which is no name of a header", Quoted(name)));
  return false;
}

void ReadHeaders(const Value& field, Match& match) {
  if (field.node().kind != NodeKind::kMap) {
    if (field.node().kind == NodeKind::kList) {
      field.Complain("must be a name, or a map of names and values, got a list",
                     "write `header: { X-Tier: [gold, silver] }`");
    } else if (const auto name = field.Text(); name && CheckHeaderName(field, *name)) {
      match.headers.push_back({.name = std::string(*name)});
    }
    return;
  }
  for (const Node::Entry& entry : field.node().entries) {
    const Value at_name("header", entry.key, field.diagnostics());
    if (!CheckHeaderName(at_name, entry.key.text)) continue;
    Match::Header header{.name = entry.key.text};
    if (entry.value.kind == NodeKind::kNull) {
      at_name.Complain(fmt::format("`{}` has no value", entry.key.text),
                       "write `\"*\"` for any value");
      continue;
    }
    for (const Value& item : Value(entry.key.text, entry.value, field.diagnostics()).Items()) {
      if (const auto text = item.Text()) header.values.emplace_back(*text);
    }
    if (std::find(header.values.begin(), header.values.end(), "*") != header.values.end()) {
      header.values.clear();
    }
    match.headers.push_back(std::move(header));
  }
}

}  // namespace

Match ReadMatch(const Value& value) {
  Match match;
  Fields fields(value.node(), fmt::format("`{}`", value.name()), value.diagnostics());
  bool ignore_case = false;
  if (const auto field = fields.Take("ignore_case")) ignore_case = field->Bool().value_or(false);
  if (const auto field = fields.Take("method")) ReadMethods(*field, match);
  if (const auto field = fields.Take("path")) ReadPaths(*field, ignore_case, match);
  if (const auto field = fields.Take("host")) ReadHosts(*field, match);
  if (const auto field = fields.Take("header")) ReadHeaders(*field, match);
  if (const auto field = fields.Take("ip")) ReadClients(*field, match);
  fields.Finish();
  if (fields.is_map() && value.node().entries.empty()) {
    value.Complain("must not be empty", value.name() == "match"
                                            ? "leave it out to meet every request"
                                            : "say which requests are exempt");
  } else if (ignore_case && value.node().Find("path") == nullptr) {
    Value("ignore_case", *value.node().Find("ignore_case"), value.diagnostics())
        .Complain("is about the path, and there is none");
  }
  return match;
}

std::vector<Match> ReadExempt(const Value& exempt) {
  std::vector<Match> matches;
  for (const Value& item : exempt.Items()) matches.push_back(ReadMatch(item));
  return matches;
}

}  // namespace sluice::config
