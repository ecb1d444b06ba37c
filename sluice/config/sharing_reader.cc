#include "sluice/config/sharing_reader.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>

#include "sluice/base/ascii.h"

namespace sluice::config {
namespace {

constexpr std::array<Value::Word<RuleScope>, 2> kScopes = {
    {{"shared", RuleScope::kShared}, {"node", RuleScope::kNode}}};
constexpr std::array<Value::Word<OnStoreFailure>, 3> kFailures = {
    {{"open", OnStoreFailure::kOpen},
     {"closed", OnStoreFailure::kClosed},
     {"local", OnStoreFailure::kLocal}}};

// 1 to 1,000,000, in digits alone.
std::optional<std::int64_t> Whole(std::string_view digits) {
  digits = Trim(digits);
  std::int64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc{} || stop != end || number < 0 || number > 1'000'000) return std::nullopt;
  return number;
}

void ReadFailure(const Value& value, Rule& rule, Shares& shares) {
  if (value.node().kind != NodeKind::kMap) {
    rule.on_store_failure = value.OneOf(kFailures).value_or(OnStoreFailure::kLocal);
  } else {
    Fields fields(value.node(), "`on_store_failure`", value.diagnostics());
    const auto part =
        fields.Require("local", "write which part of the limit a node allows: `{ local: 1/2 }`");
    fields.Finish();
    if (part) shares.local = ReadPart(*part);
  }
  if (rule.on_store_failure == OnStoreFailure::kClosed && rule.mode == RuleMode::kShadow) {
    value.diagnostics().Warning(value.node().location,
                                "`on_store_failure: closed` has no effect in a shadow rule, which "
                                "never denies",
                                "");
  }
}

}  // namespace

std::optional<Part> ReadPart(const Value& value) {
  constexpr std::string_view kHint = "write for example `1/2`";
  const auto text = value.Text();
  if (!text) return std::nullopt;
  const std::size_t slash = text->find('/');
  const auto of = Whole(text->substr(0, slash));
  const auto whole = slash == text->npos ? 1 : Whole(text->substr(slash + 1));
  if (!of || !whole) {
    value.Complain(fmt::format("must be a fraction of whole numbers, got {}", Quoted(*text)),
                   kHint);
  } else if (*of == 0 || *whole == 0 || *of > *whole) {
    value.Complain(fmt::format("must be more than 0 and at most 1, got {}", Quoted(*text)), kHint);
  } else {
    return Part{*of, *whole};
  }
  return std::nullopt;
}

Shares ReadSharing(Fields& fields, const StoreContext& store, Rule& rule) {
  Shares shares;
  if (const auto scope = fields.Take("scope")) {
    rule.scope = scope->OneOf(kScopes).value_or(RuleScope::kShared);
  }
  if (rule.scope == RuleScope::kNode) {
    fields.Refuse("on_store_failure", "means nothing with `scope: node`, which needs no store",
                  "leave one of the two out");
    shares.nodes = store.nodes;
    return shares;
  }
  if (const auto value = fields.Take("on_store_failure")) ReadFailure(*value, rule, shares);
  shares.remote = store.has_redis;
  return shares;
}

}  // namespace sluice::config
