#include "sluice/rule/internal/evaluation.h"

#include <algorithm>
#include <charconv>

namespace sluice {
namespace {

bool HostIs(std::string_view host, std::string_view wanted) {
  if (wanted.starts_with("*.")) {
    wanted.remove_prefix(1);
    return host.size() > wanted.size() && host.ends_with(wanted);
  }
  return host == wanted;
}

}  // namespace

std::string_view RuleSet::Evaluation::Name(Criterion criterion) {
  switch (criterion) {
    case Criterion::kNone:
      return "";
    case Criterion::kMethod:
      return "method";
    case Criterion::kPath:
      return "path";
    case Criterion::kHost:
      return "host";
    case Criterion::kHeader:
      return "header";
    case Criterion::kClient:
      return "ip";
  }
  return "";
}

RuleSet::Evaluation::Criterion RuleSet::Evaluation::FirstMismatch(const Match& match,
                                                                  Reading reading,
                                                                  const PathPattern** route) {
  if (!match.methods.empty() && std::find(match.methods.begin(), match.methods.end(),
                                          request_.method) == match.methods.end()) {
    return Criterion::kMethod;
  }
  if (!match.paths.empty() && !PathHolds(match.paths, reading, route)) return Criterion::kPath;
  if (!match.hosts.empty() && !HostHolds(match.hosts)) return Criterion::kHost;
  for (const Match::Header& header : match.headers) {
    if (!HeaderHolds(header)) return Criterion::kHeader;
  }
  if (!match.clients.empty() && !ClientHolds(match.clients)) return Criterion::kClient;
  return Criterion::kNone;
}

bool RuleSet::Evaluation::PathHolds(const std::vector<PathPattern>& patterns, Reading reading,
                                    const PathPattern** route) {
  const NormalPath& normal = path();
  const bool any = reading == Reading::kAny;
  for (const PathPattern& pattern : patterns) {
    const bool holds = !normal.ok() ? any
                       : any        ? pattern.MatchesAnyReading(normal)
                                    : pattern.MatchesEveryReading(normal);
    if (holds) {
      *route = &pattern;
      return true;
    }
  }
  return false;
}

bool RuleSet::Evaluation::HostHolds(const std::vector<std::string>& hosts) {
  const std::string_view host = NormalHost(request_.host, scratch_.host_);
  return std::any_of(hosts.begin(), hosts.end(),
                     [host](const std::string& wanted) { return HostIs(host, wanted); });
}

bool RuleSet::Evaluation::HeaderHolds(const Match::Header& header) {
  for (const Field& field : request_.headers) {
    if (!SameHeader(field.name, header.name)) continue;
    if (header.values.empty()) return true;
    if (std::find(header.values.begin(), header.values.end(), field.value) != header.values.end()) {
      return true;
    }
  }
  return false;
}

bool RuleSet::Evaluation::ClientHolds(const std::vector<IpPrefix>& clients) {
  const IpAddress address = client();
  return std::any_of(clients.begin(), clients.end(),
                     [address](const IpPrefix& range) { return range.Contains(address); });
}

IpAddress RuleSet::Evaluation::client() {
  if (client_) return *client_;
  client_ = ClientAddress(options_.client_address, request_.peer, request_.headers);
  return *client_;
}

const NormalPath& RuleSet::Evaluation::path() {
  if (!path_) {
    const std::size_t size = PathBufferSize(request_.target.size());
    if (scratch_.path_.size() < size) scratch_.path_.resize(size);
    NormalizePath(request_.target, scratch_.path_, path_.emplace());
  }
  return *path_;
}

std::string_view RuleSet::Evaluation::plan() {
  if (!plan_) {
    const PlanTable& plans = options_.plans;
    const std::optional<std::string_view> identity = Value(plans.key(), nullptr);
    plan_ = identity ? plans.PlanOf(*identity) : plans.fallback();
  }
  return *plan_;
}

std::optional<std::string_view> RuleSet::Evaluation::Value(const Source& source,
                                                           const PathPattern* route) {
  switch (source.kind) {
    case SourceKind::kGlobal:
      return std::string_view();
    case SourceKind::kIp:
      client_bytes_ = ClientNetwork(client(), options_.ipv6_prefix).bytes();
      return std::string_view(reinterpret_cast<const char*>(client_bytes_.data()),
                              client_bytes_.size());
    case SourceKind::kRoute:
      // Without a path pattern of its own the rule is one route: all that it meets.
      return route == nullptr ? std::string_view() : route->text();
    case SourceKind::kRegion:
      if (options_.region.empty()) return std::nullopt;
      return options_.region;
    default:
      return FindValue(source, request_, scratch_.value_);
  }
}

const Source* RuleSet::Evaluation::AppendKey(std::size_t rule_index, const PathPattern* route) {
  const Rule& rule = rules_.rules_[rule_index];
  const std::string& prefix = rules_.key_prefixes_[rule_index];
  const std::size_t start = scratch_.keys_size_;
  scratch_.AppendKeyBytes(prefix);
  for (const Source& source : rule.key) {
    bool fallback = false;
    std::optional<std::string_view> value = Value(source, route);
    if (!value && rule.on_missing_key == OnMissingKey::kFallback) {
      fallback = true;
      value = Value(rule.fallback, route);
    }
    if (!value) {
      scratch_.keys_size_ = start;
      return &source;
    }
    scratch_.AppendKeyPart(*value, fallback);
  }
  return nullptr;
}

std::optional<std::string> RuleSet::Evaluation::Describe(const Source& source,
                                                         const PathPattern* route) {
  if (source.kind == SourceKind::kIp) return IpKey(client(), options_.ipv6_prefix);
  const std::optional<std::string_view> value = Value(source, route);
  if (!value) return std::nullopt;
  return std::string(*value);
}

std::uint64_t RuleSet::Evaluation::CostOf(const Cost& cost) {
  if (request_.cost) return *request_.cost;
  if (!cost.header) return cost.fixed;
  const std::optional<std::string_view> text = FindValue(*cost.header, request_, scratch_.value_);
  if (!text) return cost.fixed;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc::result_out_of_range) return cost.max;
  if (error != std::errc() || end != text->data() + text->size()) return cost.fixed;
  return std::min(value, cost.max);
}

std::uint32_t RuleSet::Evaluation::LimitIndex(const Rule& rule) {
  if (rule.limits.size() <= 1 || !options_.plans.enabled()) return 0;
  const std::string_view wanted = plan();
  for (std::uint32_t i = 1; i < rule.limits.size(); ++i) {
    if (rule.limits[i].plan == wanted) return i;
  }
  return 0;
}

}  // namespace sluice
