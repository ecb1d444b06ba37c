// The way of one node to the counters that all share: questions and answers take their time, and
// some are lost.
//
//   Apply ──(latency)──> decided, by the server's clock ──(latency)──> done
//     `── lost, or not back within the deadline ──> done(DeadlineExceeded), whatever was charged
//
// During an outage nothing comes through in either direction. What is given back is lost as
// questions are: a store that is gone for good could do no better.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sluice/algorithm/testing/trace.h"
#include "sluice/store/remote_store.h"
#include "sluice/store/testing/shared_store.h"
#include "tests/simulation/world.h"

namespace sluice::simulation {

struct Network {
  Duration least_latency = std::chrono::microseconds{100};  // one way
  Duration most_latency = std::chrono::milliseconds{2};
  int lost_per_cent = 0;
  Duration deadline = std::chrono::milliseconds{5};
  Duration down_from{-1};  // an outage
  Duration down_until{-1};
};

// The server, with a clock of its own.
struct Server {
  Server(Store& counters, const World& its_world, Now its_start)
      : store(counters, its_start), world(its_world), start(its_start) {}
  [[nodiscard]] Now Read() const { return testing::After(start, world.now()); }

  SharedStore store;
  const World& world;
  const Now start;
};

class NetworkStore final : public RemoteStore {
 public:
  NetworkStore(World& world, Server& server, const Network& network, testing::Random& random)
      : world_(world), server_(server), network_(network), random_(random) {}

  absl::StatusOr<std::shared_ptr<const RemoteLimit>> Prepare(const Limit& limit) const override {
    return server_.store.Prepare(limit);
  }
  absl::Status Apply(RemoteGroup& group, Time deadline, Done done) override;
  void Undo(const RemoteClaim& claim, std::uint64_t units) override;
  void Renew(const RemoteClaim& /*claim*/) override {}

  // The instant, by the server's clock, of the decision on what was answered last, in time.
  [[nodiscard]] Time decided() const { return decided_; }
  [[nodiscard]] std::size_t asked() const { return asked_; }
  [[nodiscard]] std::size_t unanswered() const { return unanswered_; }

 private:
  // A question on its way: what it says is a copy, since nobody waits for it after the deadline.
  struct Question {
    RemoteGroup* group;
    Done done;
    std::deque<std::string> keys;
    std::vector<RemoteClaim> claims;
    RemoteGroup copy;
    Time decided;
    bool told = false;
  };

  [[nodiscard]] Duration Latency();
  [[nodiscard]] bool Lost();
  void Arrive(const std::shared_ptr<Question>& question);
  void Return(Question& question);

  World& world_;
  Server& server_;
  const Network& network_;
  testing::Random& random_;
  Time decided_{};
  std::size_t asked_ = 0;
  std::size_t unanswered_ = 0;
};

}  // namespace sluice::simulation
