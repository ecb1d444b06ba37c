#include "tests/simulation/slots_network.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/simulation/counters.h"

namespace sluice::simulation {
namespace {

using namespace std::chrono_literals;

constexpr Duration kAgainAfter = 200ms;
constexpr Duration kTryAgainFor = 60s;
constexpr Duration kMarkLives = 80s;

}  // namespace

Cluster::Node::Node(const World& world, Now start)
    : counters(OpenStore(start)), server(*counters, world, start) {}

Cluster::Cluster(const World& world, int servers, testing::Random& random) {
  for (int i = 0; i < servers; ++i) {
    const Duration skew{random.Between(-600'000'000'000, 600'000'000'000)};
    nodes_.push_back(std::make_unique<Node>(world, testing::After(kStart, skew)));
  }
}

// Each store knows it by the same id, since all of them are told of the same limits in order.
std::shared_ptr<const RemoteLimit> Cluster::Prepare(const Limit& limit) {
  const std::size_t first = limits_.size();
  for (const auto& node : nodes_) limits_.push_back(*node->server.store.Prepare(limit));
  return limits_[first];
}

std::uint32_t Cluster::SlotOf(std::string_view key) {
  static const HashKey hash(HashKind::kSipHash13, {});
  return static_cast<std::uint32_t>(hash(key).lo % kSlots);
}

Duration SlotsNetwork::Latency() {
  const Network& network = options_.network;
  return Duration{random_.Between(network.least_latency.count(), network.most_latency.count())};
}

bool SlotsNetwork::IsDown(const Cluster::Node& node) const {
  const Network& network = options_.network;
  return cluster_.IsFirst(node) && world_.now() >= network.down_from &&
         world_.now() < network.down_until;
}

bool SlotsNetwork::Lost(const Cluster::Node& node) {
  return random_.Chance(options_.network.lost_per_cent) || IsDown(node);
}

absl::Status SlotsNetwork::Apply(RemoteGroup& group, Time /*deadline*/, Done done) {
  Cluster::Node& node = cluster_.Of(group.claims[0].key);
  if (IsDown(node) && random_.Chance(50)) return absl::UnavailableError("gone, as is known");
  ++asked_;
  auto question = std::make_shared<Question>();
  question->group = &group;
  question->done = std::move(done);
  question->claims.assign(group.claims.begin(), group.claims.end());
  question->copy.claims = question->claims;
  if (!Lost(node)) world_.After(Latency(), [this, question] { Arrive(question); });
  world_.After(options_.network.deadline, [question] {
    if (std::exchange(question->told, true)) return;
    std::exchange(question->done, nullptr)(absl::DeadlineExceededError("no answer in time"));
  });
  return absl::OkStatus();
}

void SlotsNetwork::Arrive(const std::shared_ptr<Question>& question) {
  Cluster::Node& node = cluster_.Of(question->claims[0].key);
  const Now now = node.server.Read();
  (void)node.server.store.Apply(question->copy, Time::max(), [](const absl::Status&) {});
  node.server.store.Answer(now);
  for (const RemoteClaim& claim : question->claims) {
    Fate& fate = truth_[claim.key.data()];
    fate.charged = claim.receipt.units > 0;
    fate.decided = now.steady;
  }
  if (!Lost(node)) world_.After(Latency(), [this, question] { Return(*question); });
}

void SlotsNetwork::Return(Question& question) {
  if (std::exchange(question.told, true)) return;
  for (std::size_t i = 0; i < question.claims.size(); ++i) {
    RemoteClaim& claim = question.group->claims[i];
    claim.decision = question.claims[i].decision;
    claim.receipt = question.claims[i].receipt;
    truth_[claim.key.data()].heard = true;
  }
  question.group->allowed = question.copy.allowed;
  std::exchange(question.done, nullptr)(absl::OkStatus());
}

void SlotsNetwork::Undo(const RemoteClaim& claim, std::uint64_t units) {
  EXPECT_TRUE(truth_[claim.key.data()].charged) << "what was not charged";
  ++undos_;
  Send(std::make_shared<Owed>(Owed{
      .claim = claim, .units = units, .mark = ++cluster_.last_mark_, .first_sent = world_.now()}));
}

void SlotsNetwork::Send(const std::shared_ptr<Owed>& owed) {
  const Cluster::Node& node = cluster_.Of(owed->claim.key);
  const bool late = random_.Chance(options_.read_late_per_cent);
  const Duration way = late ? Duration{random_.Between(0, Duration{10s}.count())} : Latency();
  if (!Lost(node)) world_.After(way, [this, owed] { Deliver(owed); });
  world_.After(kAgainAfter, [this, owed] {
    if (owed->done) return;
    if (!options_.repeats || world_.now() - owed->first_sent > kTryAgainFor) {
      truth_[owed->claim.key.data()].given_up = true;
      return;
    }
    ++repeated_;
    owed->again = true;
    Send(owed);
  });
}

void SlotsNetwork::Deliver(const std::shared_ptr<Owed>& owed) {
  Cluster::Node& node = cluster_.Of(owed->claim.key);
  const Now now = node.server.Read();
  Time& until = node.marks.try_emplace(owed->mark, Time::min()).first->second;
  if (!options_.marks || until <= now.steady) {
    until = now.steady + kMarkLives;
    ++truth_[owed->claim.key.data()].undone;
    node.server.store.SetNow(now);
    node.server.store.Undo(owed->claim, owed->units);
  }
  if (Lost(node) || random_.Chance(options_.unanswered_per_cent)) return;
  world_.After(Latency(), [this, owed, &node] {
    owed->done = true;
    if (owed->again || Lost(node)) return;
    world_.After(Latency(), [owed, &node] { node.marks.erase(owed->mark); });
  });
}

}  // namespace sluice::simulation
