#include "sluice/server/node_channel.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sluice/admin/rules_view.h"
#include "sluice/base/hash.h"
#include "sluice/base/log.h"
#include "sluice/telemetry/prometheus.h"

namespace sluice {
namespace {

constexpr std::string_view kForgetDenials = "forget-denials";

}  // namespace

std::string FingerprintOf(const RuleSet& rules) {
  static const HashKey hash(HashKind::kSipHash13, {});
  return absl::StrCat(absl::Hex(hash(admin::RuleListJson(rules)).lo, absl::kZeroPad16));
}

NodeChannel::NodeChannel(net::EventLoop& loop, const Clock& clock, DenialMemory* denials,
                         redis::ChannelOptions options)
    : loop_(loop), clock_(clock), denials_(denials), channel_(loop, [&] {
        options.on_table = [this](const auto& table) { OnTable(table); };
        options.on_nodes = [this](const auto& nodes) { OnNodes(nodes); };
        options.on_refused = [](std::string_view why) {
          log::Warning("shared store refuses the channel between nodes",
                       {{"why", std::string(why)}});
        };
        return std::move(options);
      }()) {}

void NodeChannel::Use(const RuleSet& rules) {
  std::string before;
  const std::string now = FingerprintOf(rules);
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(rules_, now);
  }
  if (before == now) return;
  loop_.Post([this, now, changed = !before.empty(), generation = rules.generation()] {
    channel_.Say(now);
    if (changed) {
      // Not the same word twice.
      (void)channel_.Set(kForgetDenials, absl::StrCat(channel_.id(), "/", generation));
    }
    Compare();
  });
}

void NodeChannel::OnTable(const redis::Channel::Table& table) {
  const auto found = table.find(kForgetDenials);
  const std::string word = found == table.end() ? "" : found->second;
  const bool first = !forget_.has_value();
  if (std::exchange(forget_, word) == word || first || denials_ == nullptr) return;
  denials_->ForgetAll(clock_.Read().steady);
}

void NodeChannel::OnNodes(const std::vector<redis::ChannelNode>& nodes) {
  nodes_ = nodes;
  Compare();
}

void NodeChannel::Compare() {
  std::vector<std::string> others;
  {
    const std::lock_guard lock(mutex_);
    for (const redis::ChannelNode& node : nodes_) {
      // One that has just come may not have said it yet.
      if (node.id == channel_.id() || node.says.empty() || node.says == rules_) continue;
      others.push_back(node.name.empty() ? node.id : node.name);
    }
    node_count_ = nodes_.size();
    other_rules_ = others.size();
  }
  std::string text = absl::StrJoin(others, ",");
  if (text == told_) return;
  told_ = std::move(text);
  if (told_.empty()) {
    log::Info("all nodes count by the same rules", {{"nodes", nodes_.size()}});
  } else {
    log::Warning("nodes count by other rules than this one",
                 {{"which", told_}, {"nodes", nodes_.size()}});
  }
}

void NodeChannel::WriteMetrics(std::string& out) const {
  const std::lock_guard lock(mutex_);
  PrometheusWriter writer(out);
  writer.Single("sluice_nodes", "gauge",
                "Nodes that share the store, this one among them; 0 before it was asked.",
                node_count_);
  writer.Single("sluice_nodes_with_other_rules", "gauge",
                "Those that count by other rules than this one.", other_rules_);
}

}  // namespace sluice
