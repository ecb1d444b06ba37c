// More keys than there is room for.

#include <array>
#include <cmath>
#include <unordered_map>

#include "sluice/algorithm/testing/trace.h"
#include "sluice/algorithm/token_bucket.h"
#include "tests/conformance/store_under_test.h"

namespace sluice::conformance {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// What a store without any bound would have said.
class Reference {
 public:
  explicit Reference(const Limit& limit) : limit_(std::get<token_bucket::Limit>(limit)) {}

  bool Ask(int key, Now now) {
    token_bucket::State& state = states_[key];
    const auto step = token_bucket::Decide(limit_, state, 1, now.steady);
    state = step.next;
    return step.decision.allowed();
  }

  // The same, but with what another store admitted, right or wrong.
  bool Follow(int key, bool admitted, Now now) {
    token_bucket::State& state = states_[key];
    const auto step = token_bucket::Decide(limit_, state, 1, now.steady);
    if (admitted) state = token_bucket::Charge(limit_, state, 1, now.steady, 1'000'000).next;
    return step.decision.allowed();
  }

 private:
  token_bucket::Limit limit_;
  std::unordered_map<int, token_bucket::State> states_;
};

// One more or one fewer than the reference allows, counted over all requests of a kind of client.
struct Wrong {
  int over = 0;
  int denied = 0;

  void Count(bool allowed, bool right) {
    over += allowed && !right ? 1 : 0;
    denied += !allowed && right ? 1 : 0;
  }
};

TEST_P(BoundedStoreConformance, ExhaustedKeyStaysExhaustedWhateverTheNumberOfNewKeys) {
  Open(110'000, 0);
  const Registered& limit = Register(TokenBucket(1, hours{1}, 1));
  EXPECT_TRUE(Ask("k0", limit).decision.allowed());
  for (int i = 1; i <= 100'000; ++i) {
    ASSERT_TRUE(Ask("k" + std::to_string(i), limit).decision.allowed()) << i;
  }
  EXPECT_FALSE(Ask("k0", limit).decision.allowed());
}

// 8,192 keys' room; each second 12,500 keys that were never seen before, 1,250 honest clients that
// come as often as popularity has it, 31 that ask five times as much as they may.
TEST_P(BoundedStoreConformance, AbusersGainNothingByAFloodOfNewKeys) {
  Open(8'192, 0);
  const Limit hundred_a_minute = TokenBucket(100, minutes{1}, 100);
  const Registered& limit = Register(hundred_a_minute);
  Reference reference(hundred_a_minute);
  testing::Random random(7);
  constexpr int kHonest = 1'250;
  constexpr int kAbusers = 31;
  Wrong honest;
  Wrong abusers;
  int flood_key = 0;
  for (int ms = 0; ms < 60'000; ++ms) {
    clock_.Advance(milliseconds{1});
    const Now now = clock_.Read();
    for (int i = ms % 2; i < 13; ++i) {
      EXPECT_TRUE(Ask("flood" + std::to_string(flood_key++), limit).decision.allowed());
    }
    // A popularity of about 1/rank: the cube of a random share.
    const double share = static_cast<double>(random.Below(1'000'000)) / 1e6;
    const int client = static_cast<int>(std::floor(share * share * share * kHonest));
    honest.Count(Ask("honest" + std::to_string(client), limit).decision.allowed(),
                 reference.Ask(client, now));
    // 31 abusers, 500 requests a minute each.
    if (random.Below(1'000) < 31 * 500 / 60) {
      const int abuser = static_cast<int>(random.Below(kAbusers));
      abusers.Count(Ask("abuser" + std::to_string(abuser), limit).decision.allowed(),
                    reference.Ask(-1 - abuser, now));
    }
  }
  EXPECT_EQ(abusers.over, 0);
  EXPECT_EQ(abusers.denied, 0);
  EXPECT_EQ(honest.denied, 0);
  EXPECT_LE(honest.over, 60);  // of 60,000: of those that owed least
}

// Keys that all owe their whole limit, more of them than there is room for. Nothing bounded can
// hold them all; nobody else is denied for it.
TEST_P(BoundedStoreConformance, AttackerWhoPinsEverySlotDeniesNobodyElse) {
  Open(2'000, 0);
  const Limit five = TokenBucket(5, minutes{10}, 5);
  const Registered& limit = Register(five);
  Reference reference(five);
  Wrong honest;
  int allowed = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::string key = "pin" + std::to_string(round);
    for (int i = 0; i < 6; ++i) (void)Ask(key, limit);
    const int client = round % 500;
    const bool got = Ask("honest" + std::to_string(client), limit).decision.allowed();
    honest.Count(got, reference.Follow(client, got, clock_.Read()));
    allowed += got ? 1 : 0;
    if (round % 10 == 0) clock_.Advance(seconds{1});
  }
  EXPECT_EQ(honest.denied, 0);
  EXPECT_GT(allowed, 10'000);
}

// The same for states that are kept outside of the table.
TEST_P(BoundedStoreConformance, FloodOfLogsAndCountersDeniesNobody) {
  Open(2'000, 0);
  for (const NamedLimit& named : EveryRate(40, hours{1})) {
    SCOPED_TRACE(named.name);
    const Registered& limit = Register(named.limit);
    EXPECT_TRUE(Ask(named.name, limit, 40).decision.allowed());
    for (int i = 0; i < 20'000; ++i) {
      ASSERT_TRUE(Ask(named.name + std::to_string(i), limit).decision.allowed()) << i;
    }
    EXPECT_FALSE(Ask(named.name, limit).decision.allowed());  // it owed the most
  }
}

}  // namespace
}  // namespace sluice::conformance
