// The hot path allocates nothing: a counting operator new stands behind this whole program.
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "sluice/limiter/limiter_fixture.h"
#include "tests/allocations/counting_new.h"

namespace sluice {
namespace {

class HotPathTest : public LimiterFixture {};

TEST_F(HotPathTest, AllocatesNothingOnceItsBuffersHaveGrown) {
  Rule ip =
      MakeRule("ip", {.kind = SourceKind::kIp, .name = "", .label = "ip"}, Bucket(1000, 1s, 50));
  Rule query = MakeRule("query", {.kind = SourceKind::kQuery, .name = "key", .label = "query.key"},
                        Window(2'000, 1min));
  query.match.paths = {*PathPattern::Compile("/v1/**")};
  Rule log = MakeRule("log", HeaderSource("K"), *sliding_window_log::MakeLimit(30, 1min, false));
  Rule strict = MakeRule("strict", HeaderSource("K"), *sliding_window_strict::MakeLimit(35, 1min));
  Rule counter =
      MakeRule("counter", HeaderSource("K"), *sliding_window_counter::MakeLimit(35, 1min));
  Rule quota = MakeRule("quota", HeaderSource("K"),
                        *calendar::MakeLimit(10'000, calendar::Period::kMonth, "Europe/Berlin"));
  Rule slots = MakeRule("slots", HeaderSource("K"), Slots(3, 30s));
  log.block_for = 150ms;
  counter.mode = RuleMode::kShadow;
  counter.block_for = 1s;
  Use({ip, query, log, strict, counter, quota, slots});

  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back("key-of-a-client-" + std::to_string(i));
  const auto round = [&] {
    int denied = 0;
    for (const std::string& key : keys) {
      const Field headers[] = {{"Host", "api.example.com"}, {"K", key}};
      // The path has to be normalised and the parameter decoded, so that those buffers are in play.
      limiter_->Check({.method = "GET",
                       .target = "/v1//orders?key=a%62c&x=1",
                       .host = "API.example.com",
                       .peer = IpAddress::V4(0x0a000001),
                       .headers = headers},
                      outcome_);
      denied += outcome_.allowed() ? 0 : 1;
      limiter_->Finish(outcome_);
    }
    clock_.Advance(100ms);
    return denied;
  };
  round();
  CountAllocationsOfThisThread();
  const std::uint64_t before = CountedAllocations();
  int denied = 0;
  for (int i = 0; i < 50; ++i) denied += round();
  EXPECT_EQ(CountedAllocations(), before);
  EXPECT_GT(denied, 0);
  EXPECT_LT(denied, 5000);
}

// Answers each question when it is told to, by what a store in memory says.
class OneAtATime final : public RemoteStore {
 public:
  explicit OneAtATime(Store& counters, const HashKey& hash_key)
      : counters_(counters), hash_key_(hash_key) {}

  absl::StatusOr<std::shared_ptr<const RemoteLimit>> Prepare(const Limit& limit) const override {
    return std::make_shared<const Kept>(limit, *counters_.Register(limit));
  }
  absl::Status Apply(RemoteGroup& group, Time /*deadline*/, Done done) override {
    group_ = &group;
    done_ = std::move(done);
    return absl::OkStatus();
  }
  void Undo(const RemoteClaim& claim, std::uint64_t units) override {
    Claim local = ClaimOf(claim);
    counters_.Undo(local, units, {});
  }
  void Renew(const RemoteClaim& /*claim*/) override {}

  void Answer(Now now) {
    RemoteGroup& group = *std::exchange(group_, nullptr);
    std::array<Claim, 8> claims;
    for (std::size_t i = 0; i < group.claims.size(); ++i) claims[i] = ClaimOf(group.claims[i]);
    ClaimGroup local{.claims = std::span(claims).first(group.claims.size())};
    counters_.Apply(std::span(&local, 1), now);
    group.allowed = local.allowed;
    for (std::size_t i = 0; i < group.claims.size(); ++i) {
      group.claims[i].decision = claims[i].decision;
      group.claims[i].receipt = claims[i].receipt;
    }
    Done done = std::move(done_);
    done(absl::OkStatus());
  }
  [[nodiscard]] bool asked() const { return group_ != nullptr; }

 private:
  struct Kept final : RemoteLimit {
    Kept(const Limit& its_limit, LimitId its_id) : kept(its_limit), id(its_id) {}
    const Limit& limit() const override { return kept; }
    const Limit kept;
    const LimitId id;
  };
  [[nodiscard]] Claim ClaimOf(const RemoteClaim& remote) const {
    const auto& limit = static_cast<const Kept&>(*remote.limit);
    Hash128 key = hash_key_(remote.key);
    if (remote.block) std::swap(key.lo, key.hi);
    return {.key = key,
            .limit = &limit.kept,
            .limit_id = limit.id,
            .kind = remote.kind,
            .charge_denied = remote.charge_denied,
            .cost = remote.cost,
            .decision = {},
            .receipt = remote.receipt};
  }

  Store& counters_;
  const HashKey& hash_key_;
  RemoteGroup* group_ = nullptr;
  Done done_;
};

TEST_F(HotPathTest, AllocatesNothingWhereASharedStoreIsAsked) {
  OneAtATime remote(*store_, store_->hash_key());
  Rule blocking = MakeRule("blocking", HeaderSource("K"), Bucket(1000, 1s, 30));
  blocking.block_for = 150ms;
  Rule node = MakeRule("node", HeaderSource("K"), Window(2'000, 1min));
  node.scope = RuleScope::kNode;
  Rule slots = MakeRule("slots", HeaderSource("K"), Slots(3, 30s));
  auto set = std::make_shared<const RuleSet>(std::vector<Rule>{blocking, node, slots},
                                             RuleSetOptions{}, 1);
  DenialMemory denials(64);
  Limiter limiter({.store = *store_,
                   .hash_key = store_->hash_key(),
                   .clock = clock_,
                   .observer = nullptr,
                   .remote = &remote,
                   .denials = &denials},
                  *ActiveRules::Make(std::move(set), *store_, clock_, &remote));
  int answered = 0;
  int denied = 0;
  const auto round = [&] {
    for (int i = 0; i < 50; ++i) {
      const Field headers[] = {{"Host", "api.example.com"}, {"K", "a-client"}};
      if (!limiter.Check({.method = "GET", .target = "/", .headers = headers}, outcome_,
                         [&answered] { ++answered; })) {
        while (remote.asked()) remote.Answer(clock_.Read());
      }
      denied += outcome_.allowed() ? 0 : 1;
      limiter.Finish(outcome_);
    }
    clock_.Advance(100ms);
  };
  round();
  CountAllocationsOfThisThread();
  const std::uint64_t before = CountedAllocations();
  denied = 0;
  for (int i = 0; i < 50; ++i) round();
  EXPECT_EQ(CountedAllocations(), before);
  EXPECT_GT(denied, 0);
  EXPECT_LT(denied, 2500);
  EXPECT_GT(answered, 100);
  outcome_ = {};
}

}  // namespace
}  // namespace sluice
