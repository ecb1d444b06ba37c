#include "sluice/config/source_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sluice/base/ascii.h"

namespace sluice::config {
namespace {

struct BuiltIn {
  std::string_view name;
  SourceKind kind;
};
constexpr BuiltIn kBuiltIns[] = {
    {"global", SourceKind::kGlobal}, {"ip", SourceKind::kIp},       {"method", SourceKind::kMethod},
    {"host", SourceKind::kHost},     {"route", SourceKind::kRoute}, {"region", SourceKind::kRegion},
};
// With a name after a dot.
constexpr BuiltIn kPrefixes[] = {{"header", SourceKind::kHeader},
                                 {"cookie", SourceKind::kCookie},
                                 {"query", SourceKind::kQuery}};

bool IsName(std::string_view text) {
  const auto letter = [](char c) { return IsLetter(c) || c == '_'; };
  return !text.empty() && text.size() <= 64 && letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || IsDigit(c) || c == '-'; });
}

// Words that mean something else where a source may stand.
bool IsReserved(std::string_view name) {
  const auto is = [name](const BuiltIn& built_in) { return built_in.name == name; };
  return std::any_of(std::begin(kBuiltIns), std::end(kBuiltIns), is) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes), is) || name == "deny" ||
         name == "skip";
}

void ReadIp(const Node& node, Diagnostics& diagnostics, RuleSetOptions& options) {
  Fields fields(node, "`ip`", diagnostics);
  if (const auto proxies = fields.Take("trusted_proxies")) {
    for (const Value& item : proxies->Items()) {
      const auto text = item.Text();
      if (!text) continue;
      const auto range = IpPrefix::Parse(*text);
      if (!range.ok()) {
        diagnostics.Error(item.node().location, std::string(range.status().message()));
        continue;
      }
      options.client_address.trusted_proxies.push_back(*range);
      if (!text->ends_with("/0")) continue;
      diagnostics.Warning(item.node().location, fmt::format("{} trusts everybody", Quoted(*text)),
                          "whoever is trusted may say that it speaks for any address; name the "
                          "ranges of your proxies");
    }
  }
  if (const auto prefix = fields.Take("ipv6_prefix")) {
    options.ipv6_prefix = static_cast<int>(prefix->Integer(1, 128).value_or(64));
  }
  static constexpr std::array<Value::Word<ForwardedHeader>, 2> kHeaders = {
      {{"X-Forwarded-For", ForwardedHeader::kXForwardedFor},
       {"Forwarded", ForwardedHeader::kForwarded}}};
  if (const auto header = fields.Take("header")) {
    options.client_address.header =
        header->OneOf(kHeaders).value_or(ForwardedHeader::kXForwardedFor);
  }
  fields.Later({"proxy_protocol"});
  fields.Finish();
}

}  // namespace

void SourceNames::ReadAttributes(const Value& attributes) {
  for (const Value& item : attributes.Items()) {
    const auto text = item.Text();
    if (!text) continue;
    if (!IsName(*text) || IsReserved(*text)) {
      item.Complain(fmt::format("has {}, which cannot be the name of an attribute", Quoted(*text)),
                    "names are letters, digits, `_` and `-`, and none of the built-in keys");
    } else if (IsAttribute(*text)) {
      item.Complain(fmt::format("has {} twice", Quoted(*text)));
    } else {
      attributes_.emplace_back(*text);
    }
  }
}

void SourceNames::ReadIdentities(const Value& identity, RuleSetOptions& options) {
  const Node& node = identity.node();
  if (node.kind != NodeKind::kMap) {
    identity.Complain("must be a map of names",
                      "write `identity: { api_key: { header: X-API-Key } }`");
    return;
  }
  for (const Node::Entry& entry : node.entries) {
    if (entry.key.text == "ip") {
      ReadIp(entry.value, identity.diagnostics(), options);
    } else {
      AddIdentity(entry.key.text, entry.key, entry.value, identity.diagnostics());
    }
  }
}

void SourceNames::AddIdentity(const std::string& name, const Node& key, const Node& node,
                              Diagnostics& diagnostics) {
  if (!IsName(name) || IsReserved(name) || IsAttribute(name)) {
    diagnostics.Error(key.location,
                      fmt::format("{} cannot be the name of an identity", Quoted(name)),
                      "names are letters, digits, `_` and `-`, and neither an attribute nor one of "
                      "the built-in keys");
    return;
  }
  Fields fields(node, fmt::format("`{}`", name), diagnostics);
  std::optional<Source> source;
  int given = 0;
  for (const BuiltIn& prefix : kPrefixes) {
    const auto value = fields.Take(prefix.name);
    if (!value) continue;
    ++given;
    const auto text = value->Text();
    if (!text) continue;
    if (prefix.kind != SourceKind::kQuery && !IsToken(*text)) {
      value->Complain(fmt::format("cannot have the name {}", Quoted(*text)),
                      "a name has neither blanks nor any of ()<>@,;:\\\"/[]?={}");
    }
    source = Source{.kind = prefix.kind, .name = std::string(*text), .label = name};
  }
  fields.Later({"jwt"});
  fields.Finish();
  if (fields.is_map() && given != 1 && node.Find("jwt") == nullptr) {
    fields.Complain(fmt::format("`{}` must have exactly one of header, cookie and query", name));
  }
  // Also after a complaint: its rules have none of their own then.
  identities_[name] =
      source.value_or(Source{.kind = SourceKind::kHeader, .name = "x", .label = name});
}

bool SourceNames::IsAttribute(std::string_view name) const {
  return std::find(attributes_.begin(), attributes_.end(), name) != attributes_.end();
}

std::optional<Source> SourceNames::FindPlain(std::string_view name) const {
  for (const BuiltIn& built_in : kBuiltIns) {
    if (built_in.name == name) return Source{.kind = built_in.kind, .label = std::string(name)};
  }
  if (const auto identity = identities_.find(name); identity != identities_.end()) {
    return identity->second;
  }
  if (!IsAttribute(name)) return std::nullopt;
  return Source{
      .kind = SourceKind::kAttribute, .name = std::string(name), .label = std::string(name)};
}

std::optional<Source> SourceNames::FindPrefixed(const Value& value, std::string_view text) const {
  const std::size_t dot = text.find('.');
  const std::string_view name = text.substr(dot + 1);
  for (const BuiltIn& prefix : kPrefixes) {
    if (prefix.name != text.substr(0, dot)) continue;
    if (name.empty() || (prefix.kind != SourceKind::kQuery && !IsToken(name))) {
      value.Complain(fmt::format("has {}, which names no {}", Quoted(text), prefix.name));
      return std::nullopt;
    }
    return Source{.kind = prefix.kind, .name = std::string(name), .label = std::string(text)};
  }
  value.diagnostics().Error(value.node().location,
                            UnknownName("kind of key", text.substr(0, dot), {}),
                            "with a dot there are header.X, cookie.x and query.x");
  return std::nullopt;
}

std::optional<Source> SourceNames::Find(const Value& value) const {
  const auto text = value.Text();
  if (!text) return std::nullopt;
  if (text->find('.') != text->npos) return FindPrefixed(value, *text);
  auto source = FindPlain(*text);
  if (source && (source->kind != SourceKind::kRegion || has_region_)) return source;
  if (source) {
    value.Complain("has `region`, but this node has none", "write `node: { region: ... }`");
    return std::nullopt;
  }
  std::vector<std::string_view> known;
  for (const BuiltIn& built_in : kBuiltIns) known.push_back(built_in.name);
  for (const auto& [name, identity] : identities_) known.push_back(name);
  known.insert(known.end(), attributes_.begin(), attributes_.end());
  const std::string message = UnknownName("identity", *text, known);
  value.diagnostics().Error(value.node().location, message,
                            message.ends_with('?')
                                ? ""
                                : "declare it under `identity`, or in `attributes` "
                                  "when a door passes it on");
  return std::nullopt;
}

}  // namespace sluice::config
