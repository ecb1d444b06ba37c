// What the nodes on one Redis tell each other (store/redis/channel.h), as far as this version has
// something to say: by which rules each of them counts, and that remembered denials are to be
// forgotten.
//
// Nodes that count by other rules are told of in the log, once for each change, and in a metric: a
// limit that two nodes understand in two ways is kept by neither. While a change of the rules goes
// from node to node that is as it should be.
//
// When a node gets other rules all nodes forget the denials that they remember (row 12 of the
// design): what was denied by the old numbers may pass by the new ones, or the other way round.
//
// Thread-safety: made and destroyed as Channel is; Use() and WriteMetrics() from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/limiter/denial_memory.h"
#include "sluice/net/event_loops.h"
#include "sluice/rule/rule_set.h"
#include "sluice/store/redis/channel.h"

namespace sluice {

// The same for the same rules on every node, whatever their generation.
[[nodiscard]] std::string FingerprintOf(const RuleSet& rules);

class NodeChannel {
 public:
  // All outlive the result; `denials` may be null. The callbacks of `options` are its own.
  NodeChannel(net::EventLoop& loop, const Clock& clock, DenialMemory* denials,
              redis::ChannelOptions options);
  NodeChannel(const NodeChannel&) = delete;
  NodeChannel& operator=(const NodeChannel&) = delete;

  // The rules that this node counts by from now on.
  void Use(const RuleSet& rules);

  void WriteMetrics(std::string& out) const;  // appends

 private:
  void OnTable(const redis::Channel::Table& table);
  void OnNodes(const std::vector<redis::ChannelNode>& nodes);
  void Compare();

  net::EventLoop& loop_;
  const Clock& clock_;
  DenialMemory* const denials_;
  // On the loop.
  std::optional<std::string> forget_;  // the word for it that was heard last; nothing: no table yet
  std::vector<redis::ChannelNode> nodes_;
  std::string told_;  // to the log: those with other rules

  mutable std::mutex mutex_;  // guards what follows
  std::string rules_;
  std::uint64_t node_count_ = 0;
  std::uint64_t other_rules_ = 0;

  redis::Channel channel_;  // last: its callbacks come here
};

}  // namespace sluice
