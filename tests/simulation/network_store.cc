#include "tests/simulation/network_store.h"

#include <utility>

namespace sluice::simulation {

Duration NetworkStore::Latency() {
  return Duration{random_.Between(network_.least_latency.count(), network_.most_latency.count())};
}

bool NetworkStore::Lost() {
  const bool down = world_.now() >= network_.down_from && world_.now() < network_.down_until;
  return random_.Chance(network_.lost_per_cent) || down;
}

absl::Status NetworkStore::Apply(RemoteGroup& group, Time /*deadline*/, Done done) {
  ++asked_;
  auto question = std::make_shared<Question>();
  question->group = &group;
  question->done = std::move(done);
  for (const RemoteClaim& claim : group.claims) {
    question->keys.emplace_back(claim.key);
    question->claims.push_back(claim);
    question->claims.back().key = question->keys.back();
  }
  question->copy.claims = question->claims;
  if (!Lost()) world_.After(Latency(), [this, question] { Arrive(question); });
  world_.After(network_.deadline, [this, question] {
    if (std::exchange(question->told, true)) return;
    ++unanswered_;
    question->done(absl::DeadlineExceededError("no answer in time"));
  });
  return absl::OkStatus();
}

void NetworkStore::Arrive(const std::shared_ptr<Question>& question) {
  const Now now = server_.Read();
  question->decided = now.steady;
  (void)server_.store.Apply(question->copy, Time::max(), [](const absl::Status&) {});
  server_.store.Answer(now);
  if (!Lost()) world_.After(Latency(), [this, question] { Return(*question); });
}

void NetworkStore::Return(Question& question) {
  if (std::exchange(question.told, true)) return;
  for (std::size_t i = 0; i < question.claims.size(); ++i) {
    RemoteClaim& claim = question.group->claims[i];
    claim.decision = question.claims[i].decision;
    claim.receipt = question.claims[i].receipt;
    claim.good_for = question.claims[i].good_for;
  }
  question.group->allowed = question.copy.allowed;
  decided_ = question.decided;
  question.done(absl::OkStatus());
}

void NetworkStore::Undo(const RemoteClaim& claim, std::uint64_t units) {
  if (Lost()) return;
  const auto key = std::make_shared<std::string>(claim.key);
  const auto limit = claim.limit->shared_from_this();
  world_.After(Latency(), [this, key, limit, copy = claim, units]() mutable {
    copy.key = *key;
    server_.store.SetNow(server_.Read());
    server_.store.Undo(copy, units);
  });
}

}  // namespace sluice::simulation
