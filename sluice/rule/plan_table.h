// Who has which plan: from the value of an identity (an API key) to a plan's name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sluice/rule/source.h"

namespace sluice {

class PlanTable {
 public:
  PlanTable() = default;  // no plans: everybody has the rules' own numbers
  // `key` says where the identity is found; who is not in `plans` has `fallback` (may be empty).
  PlanTable(Source key, std::string fallback)
      : key_(std::move(key)), fallback_(std::move(fallback)) {}

  void Set(std::string identity, std::string plan) {
    plans_[std::move(identity)] = std::move(plan);
  }

  // Empty: the rules' own numbers.
  [[nodiscard]] std::string_view PlanOf(std::string_view identity) const;
  [[nodiscard]] std::string_view fallback() const { return fallback_; }
  [[nodiscard]] const Source& key() const { return key_; }
  [[nodiscard]] std::size_t size() const { return plans_.size(); }
  [[nodiscard]] bool enabled() const { return key_.kind != SourceKind::kGlobal; }

 private:
  struct ViewHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  Source key_;
  std::string fallback_;
  absl::flat_hash_map<std::string, std::string, ViewHash, std::equal_to<>> plans_;
};

}  // namespace sluice
