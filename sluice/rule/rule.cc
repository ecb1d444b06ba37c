#include "sluice/rule/rule.h"

namespace sluice {
namespace {

bool NamesCaller(const Source& source) {
  switch (source.kind) {
    case SourceKind::kIp:
    case SourceKind::kHeader:
    case SourceKind::kCookie:
    case SourceKind::kQuery:
    case SourceKind::kAttribute:
      return true;
    case SourceKind::kGlobal:
    case SourceKind::kMethod:
    case SourceKind::kHost:
    case SourceKind::kRoute:
    case SourceKind::kRegion:
      return false;
  }
  return false;
}

}  // namespace

bool Rule::KeyedByCaller() const {
  for (const Source& source : key) {
    if (NamesCaller(source)) return true;
  }
  return false;
}

std::string_view ToString(RuleScope scope) { return scope == RuleScope::kNode ? "node" : "shared"; }

std::string_view ToString(OnStoreFailure failure) {
  switch (failure) {
    case OnStoreFailure::kOpen:
      return "open";
    case OnStoreFailure::kClosed:
      return "closed";
    case OnStoreFailure::kLocal:
      return "local";
  }
  return "";
}

}  // namespace sluice
