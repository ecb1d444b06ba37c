// The names that stand for a part of a key: what is built in, `identity:` and `attributes:`.
//
//   identity:
//     api_key: { header: X-API-Key }      key: api_key
//   attributes: [device]                  key: [device, route]
//                                         key: header.X-Org
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/config/fields.h"
#include "sluice/rule/rule_set.h"
#include "sluice/rule/source.h"

namespace sluice::config {

class SourceNames {
 public:
  // `attributes: [device, tenant]`
  void ReadAttributes(const Value& attributes);
  // `identity: { ... }`; what `ip` says goes into `options`.
  void ReadIdentities(const Value& identity, RuleSetOptions& options);
  void set_has_region(bool has_region) { has_region_ = has_region; }

  // The source that `value` names; complains when there is none, with what was meant.
  [[nodiscard]] std::optional<Source> Find(const Value& value) const;

 private:
  void AddIdentity(const std::string& name, const Node& key, const Node& node,
                   Diagnostics& diagnostics);
  [[nodiscard]] bool IsAttribute(std::string_view name) const;
  [[nodiscard]] std::optional<Source> FindPlain(std::string_view name) const;
  [[nodiscard]] std::optional<Source> FindPrefixed(const Value& value, std::string_view text) const;

  std::map<std::string, Source, std::less<>> identities_;
  std::vector<std::string> attributes_;
  bool has_region_ = false;
};

}  // namespace sluice::config
