#include "sluice/config/sharing_reader.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>

#include "sluice/algorithm/lease_size.h"
#include "sluice/base/ascii.h"
#include "sluice/config/limit_text.h"

namespace sluice::config {
namespace {

constexpr std::array<Value::Word<RuleScope>, 2> kScopes = {
    {{"shared", RuleScope::kShared}, {"node", RuleScope::kNode}}};
constexpr std::array<Value::Word<OnStoreFailure>, 3> kFailures = {
    {{"open", OnStoreFailure::kOpen},
     {"closed", OnStoreFailure::kClosed},
     {"local", OnStoreFailure::kLocal}}};

// 0 to 1,000,000, in digits alone.
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

enum class LeaseWord : std::uint8_t { kOff, kAuto };
constexpr std::array<Value::Word<LeaseWord>, 2> kLeases = {
    {{"off", LeaseWord::kOff}, {"auto", LeaseWord::kAuto}}};

// `{ max: 100, for: 100ms }`, one of them or both.
std::optional<RuleLease> ReadLeaseSize(const Value& value, const std::vector<RuleLimit>& limits) {
  Fields fields(value.node(), "`lease`", value.diagnostics());
  RuleLease lease;
  if (const auto max = fields.Take("max")) {
    lease.most = static_cast<std::uint64_t>(
        max->Integer(static_cast<std::int64_t>(kLeastLeased), INT64_MAX).value_or(0));
  }
  if (const auto length = fields.Take("for")) {
    lease.length = length->Length(kShortestLease, kMaxPeriod).value_or(Duration{0});
    for (const RuleLimit& limit : limits) {
      if (lease.length <= LongestLease(limit.limit)) continue;
      length->Complain(fmt::format("must be at most {}, half of the time in which {} comes back, "
                                   "got {}",
                                   DurationText(LongestLease(limit.limit)), LimitText(limit.limit),
                                   DurationText(lease.length)),
                       "or write `lease: auto`");
      break;
    }
  }
  fields.Finish();
  if (fields.is_map() && value.node().entries.empty()) {
    value.Complain("must say how much, or for how long", "write `max`, `for` or both, or `auto`");
  }
  return lease;
}

// Why a rule can have no lease; empty: it can.
std::string_view AgainstLease(const Rule& rule) {
  if (rule.scope == RuleScope::kNode)
    return "means nothing with `scope: node`, which needs no store";
  if (rule.mode == RuleMode::kShadow) return "is not for shadow rules, which deny nobody";
  if (rule.charge_denied)
    return "means nothing with `charge_denied`: all that is denied is charged";
  if (rule.block_for > Duration{0})
    return "means nothing with `block_for`, which the store looks at";
  return "";
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

void ReadLease(Fields& fields, Rule& rule) {
  const auto value = fields.Take("lease");
  if (!value) return;
  if (value->node().kind == NodeKind::kMap) {
    rule.lease = ReadLeaseSize(*value, rule.limits);
  } else if (value->OneOf(kLeases).value_or(LeaseWord::kOff) == LeaseWord::kAuto) {
    rule.lease = RuleLease{};
  }
  if (!rule.lease) return;
  if (const std::string_view why = AgainstLease(rule); !why.empty()) {
    value->Complain(why, "leave one of the two out");
    return;
  }
  bool any = rule.limits.empty();  // after a complaint
  for (const RuleLimit& limit : rule.limits) {
    if (!CanLease(limit.limit)) {
      value->Complain(fmt::format("is not for {}", LimitText(limit.limit)),
                      "what is taken in bulk there would not keep the limit");
      return;
    }
    any = any || LeaseSizeOf(limit.limit, rule.lease->most, rule.lease->length);
  }
  if (!any) {
    value->diagnostics().Warning(
        value->node().location,
        fmt::format("`lease` has no effect: of {} less than {} units can be taken at a time",
                    LimitText(rule.limits[0].limit), kLeastLeased),
        "");
  }
}

}  // namespace sluice::config
