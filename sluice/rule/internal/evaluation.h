// One request's evaluation against one RuleSet: what RuleSet::Evaluate and Explain share. Finds
// each attribute of the request at most once, when a rule first asks for it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/rule/rule_set.h"

namespace sluice {

class RuleSet::Evaluation {
 public:
  Evaluation(const RuleSet& rules, const LimitRequest& request, Scratch& scratch)
      : rules_(rules), options_(rules.options_), request_(request), scratch_(scratch) {}

  // What kept a match from holding.
  enum class Criterion : std::uint8_t { kNone, kMethod, kPath, kHost, kHeader, kClient };
  [[nodiscard]] static std::string_view Name(Criterion criterion);

  // Which readings of a path with two (rule/path.h) must be covered: a rule's own match needs any,
  // an exemption every one. A path that can't be normalised is covered where any reading is enough.
  enum class Reading : std::uint8_t { kAny, kEvery };

  // kNone: `match` holds. `route` is set to the pattern that held, if any was asked for.
  Criterion FirstMismatch(const Match& match, Reading reading, const PathPattern** route);

  // The key of `rule` onto the end of scratch.keys_. Null when all of it was found, else the part
  // that is missing; nothing was appended then.
  const Source* AppendKey(std::size_t rule_index, const PathPattern* route);
  // A part of a key as `AppendKey` would find it, for people.
  std::optional<std::string> Describe(const Source& source, const PathPattern* route);

  std::uint64_t CostOf(const Cost& cost);
  std::uint32_t LimitIndex(const Rule& rule);

  IpAddress client();
  const NormalPath& path();
  std::string_view plan();

 private:
  bool PathHolds(const std::vector<PathPattern>& patterns, Reading reading,
                 const PathPattern** route);
  bool HostHolds(const std::vector<std::string>& hosts);
  bool HeaderHolds(const Match::Header& header);
  bool ClientHolds(const std::vector<IpPrefix>& clients);
  // The bytes of one part; nothing when it is missing. Views end at the next call.
  std::optional<std::string_view> Value(const Source& source, const PathPattern* route);

  const RuleSet& rules_;
  const RuleSetOptions& options_;
  const LimitRequest& request_;
  Scratch& scratch_;

  std::optional<IpAddress> client_;
  std::optional<NormalPath> path_;
  std::optional<std::string_view> plan_;
  std::array<std::uint8_t, 16> client_bytes_{};
};

}  // namespace sluice
