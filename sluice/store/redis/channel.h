// What the nodes on one Redis tell each other apart from counters: a small table, and who they are.
//
//   Channel channel(loop, {.connection = ..., .node = "a", .says = fingerprint, .on_table = ...});
//   channel.Set("denials", "forget");
//
//   node A ── Set(name, value) ──> Redis: value and a new version, in one step
//   node B ── version? each kPollEvery ── another one ──> the whole table ──> on_table
//   each   ── I am here, and say this; each beat_every ──> who else is ──> on_nodes
//
// Guarantee: a node that is connected has called on_table with a value at most kPollEvery and two
// round trips after the server took it. The table is a state and no stream of events: of values
// that follow each other more quickly a node may see the last alone, and one that was cut off sees
// what is there when it is back. Of two nodes that set one name at the same time the later stays.
// It lives as long as the server remembers it, and kKept beyond the last node; a server that forgot
// all has an empty one, which is told, too.
//
// A Set() that cannot be sent is kept until it can, the last one of each name.
//
// A connection of its own: neither harms the other's deadlines. In a cluster it begins with one of
// the seeds, follows MOVED to the server that has the channel's slot, and begins anew when that one
// is gone.
//
// All of it on the loop's thread (or before the loop runs). Destroy it before the loops are
// stopped.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "sluice/base/time.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/redis_connection.h"

namespace sluice::redis {

struct ChannelNode {
  std::string id;    // random, of the process
  std::string name;  // of the configuration; may be empty
  std::string says;

  friend bool operator==(const ChannelNode&, const ChannelNode&) = default;
};

struct ChannelOptions {
  using Table = std::map<std::string, std::string, std::less<>>;

  net::RedisConnectionOptions connection;  // on_state is the channel's
  std::vector<net::HostPort> seeds;        // of a cluster, in place of the address; empty: none
  std::string prefix = "sluice";           // as KeyOptions::prefix
  std::string node;
  std::string says;
  Duration beat_every = std::chrono::seconds{2};
  Duration gone_after = std::chrono::seconds{7};  // without a beat, by the server's clock
  // Called on the loop: with the table when it was read for the first time, and whenever it
  // differs. May be null.
  std::function<void(const Table&)> on_table;
  // The same with the nodes that were there within gone_after, this one among them, by id.
  std::function<void(const std::vector<ChannelNode>&)> on_nodes;
  // The server refuses, in its own words: whenever those differ from the last ones. May be null.
  std::function<void(std::string_view)> on_refused;
};

class Channel {
 public:
  using Table = ChannelOptions::Table;

  static constexpr Duration kPollEvery = std::chrono::milliseconds{250};
  static constexpr Duration kKept = std::chrono::hours{30 * 24};
  static constexpr std::size_t kLongestName = 256;
  static constexpr std::size_t kLongestValue = 4096;
  static constexpr std::size_t kMostNames = 2000;
  static constexpr std::size_t kMostUnsent = 1000;

  Channel(net::EventLoop& loop, ChannelOptions options);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  // `status`: OK when the server has taken it; ResourceExhausted when the table is full; Aborted
  // when this node has set the name anew before that, or the channel ends.
  using Done = absl::AnyInvocable<void(const absl::Status& status)>;
  // An empty value takes the name out. `done`, which may be null, is called once and never from
  // inside of this. Not OK, and `done` is not called: InvalidArgument, a name that is empty, or
  // either is too long; ResourceExhausted, too many wait to be sent.
  absl::Status Set(std::string_view name, std::string_view value, Done done = nullptr);
  // From the next beat on, which comes at once.
  void Say(std::string says);

  [[nodiscard]] const std::string& id() const;

 private:
  class Core;

  const std::unique_ptr<Core> core_;
};

}  // namespace sluice::redis
