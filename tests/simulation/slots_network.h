// A cluster in simulated time: slots on several servers, each with a clock of its own, and the way
// of one node to them, on which questions, answers and undos are late, lost, or read twice.
//
//   Apply ──(latency)──> decided by the slot's server ──(latency)──> done
//     `── lost, or not back within the deadline ──> done(DeadlineExceeded), whatever was charged
//   Undo  ──(latency)──> given back, once for each mark ──(latency)──> known to be done
//     │                          `── answered the first time: the mark is deleted
//     `── no answer ──> sent again, under the same mark, for a minute
//
// The undos are store/redis' (internal/give_back.h, the script's mode `u`) in a few lines.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/algorithm/testing/trace.h"
#include "sluice/store/memory/memory_store.h"
#include "sluice/store/remote_store.h"
#include "tests/simulation/network_store.h"
#include "tests/simulation/world.h"

namespace sluice::simulation {

struct SlotsNetworkOptions {
  Network network;              // an outage is that of the first server alone
  int read_late_per_cent = 0;   // of undos: read up to 10 s later, from a connection that was left
  int unanswered_per_cent = 0;  // of undos that are done, whatever else is lost
  bool repeats = true;          // an undo whose answer is lost
  bool marks = true;
};

// What really became of one claim.
struct Fate {
  bool charged = false;
  Time decided;        // by its server's clock
  bool heard = false;  // the answer came in time
  int undone = 0;
  bool given_up = false;  // the undo
};

class Cluster {
 public:
  static constexpr std::uint32_t kSlots = 16;

  Cluster(const World& world, int servers, testing::Random& random);
  // The same limit on all servers.
  std::shared_ptr<const RemoteLimit> Prepare(const Limit& limit);
  static std::uint32_t SlotOf(std::string_view key);

 private:
  friend class SlotsNetwork;
  struct Node {
    explicit Node(const World& world, Now start);
    std::unique_ptr<MemoryStore> counters;
    Server server;
    std::map<std::uint64_t, Time> marks;  // of undos, until when
  };
  Node& Of(std::string_view key) { return *nodes_[SlotOf(key) % nodes_.size()]; }
  [[nodiscard]] bool IsFirst(const Node& node) const { return &node == nodes_[0].get(); }

  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::shared_ptr<const RemoteLimit>> limits_;
  std::uint64_t last_mark_ = 0;
};

// Takes groups of one slot. The keys of claims live until the end; where their bytes lie tells
// whose they are.
class SlotsNetwork final : public RemoteStore {
 public:
  using Truth = std::map<const char*, Fate>;

  SlotsNetwork(World& world, Cluster& cluster, const SlotsNetworkOptions& options,
               testing::Random& random, Truth& truth)
      : world_(world), cluster_(cluster), options_(options), random_(random), truth_(truth) {}

  absl::StatusOr<std::shared_ptr<const RemoteLimit>> Prepare(const Limit& limit) const override {
    return cluster_.Prepare(limit);
  }
  absl::Status Apply(RemoteGroup& group, Time deadline, Done done) override;
  void Undo(const RemoteClaim& claim, std::uint64_t units) override;
  void Renew(const RemoteClaim& /*claim*/) override {}

  [[nodiscard]] std::size_t asked() const { return asked_; }
  [[nodiscard]] std::size_t undos() const { return undos_; }
  [[nodiscard]] std::size_t repeated() const { return repeated_; }

 private:
  struct Question {
    RemoteGroup* group;
    Done done;
    std::vector<RemoteClaim> claims;  // copies: nobody waits for them after the deadline
    RemoteGroup copy;
    bool told = false;
  };
  struct Owed {
    RemoteClaim claim;
    std::uint64_t units;
    std::uint64_t mark;
    Duration first_sent;
    bool done = false;
    bool again = false;  // it was sent more than once
  };

  [[nodiscard]] Duration Latency();
  [[nodiscard]] bool IsDown(const Cluster::Node& node) const;
  [[nodiscard]] bool Lost(const Cluster::Node& node);
  void Arrive(const std::shared_ptr<Question>& question);
  void Return(Question& question);
  void Send(const std::shared_ptr<Owed>& owed);
  void Deliver(const std::shared_ptr<Owed>& owed);

  World& world_;
  Cluster& cluster_;
  const SlotsNetworkOptions& options_;
  testing::Random& random_;
  Truth& truth_;
  std::size_t asked_ = 0;
  std::size_t undos_ = 0;
  std::size_t repeated_ = 0;
};

}  // namespace sluice::simulation
