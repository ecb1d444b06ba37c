// What leases cost: of what a limit would admit, how much goes unused, where two nodes lease one
// key and give back what they did not spend.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>

#include "sluice/algorithm/testing/pure_key.h"
#include "sluice/algorithm/testing/trace.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using testing::PureKey;

template <typename L>
Limit Made(absl::StatusOr<L> limit) {
  EXPECT_TRUE(limit.ok()) << limit.status();
  return *std::move(limit);
}

// A node that leases `size` units for `length`, or as many as there are, when it has none.
class Node {
 public:
  Node(PureKey& key, std::uint64_t size, Duration length)
      : key_(key), size_(size), length_(length) {}

  bool Admit(Duration now) {
    if (left_ == 0 || now >= good_until_) Lease(now);
    if (left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  void Lease(Duration now) {
    if (left_ > 0) key_.Undo(receipt_, left_, testing::At(now));
    left_ = 0;
    const std::uint64_t most = MostLeased(key_.limit(), length_);
    PureKey::Answer answer = key_.Lease(std::min(size_, most), testing::At(now), length_);
    if (!answer.decision.allowed() && answer.decision.remaining > 0) {
      const std::uint64_t rest = std::min({size_, most, answer.decision.remaining});
      answer = key_.Lease(rest, testing::At(now), length_);
    }
    if (!answer.decision.allowed()) return;
    receipt_ = answer.receipt;
    left_ = answer.receipt.units;
    good_until_ = now + LeaseGoodFor(key_.limit(), answer.decision, length_);
  }

  PureKey& key_;
  const std::uint64_t size_;
  const Duration length_;
  Receipt receipt_;
  std::uint64_t left_ = 0;
  Duration good_until_{0};
};

constexpr Duration kStart = std::chrono::hours{24 * 7 * 500};
constexpr Duration kRun = 20s;

// Of requests that come `apart` for kRun, each to the next of two nodes, how many are admitted.
std::uint64_t Admitted(const Limit& limit, Duration apart, Duration lease) {
  PureKey key(limit);
  std::array<Node, 2> nodes = {Node(key, 50, lease), Node(key, 50, lease)};
  std::uint64_t admitted = 0;
  std::size_t next = 0;
  for (Duration now = kStart; now < kStart + kRun; now += apart) {
    const bool passes = lease > 0s ? nodes[next++ % 2].Admit(now)
                                   : key.Acquire(1, testing::At(now)).decision.allowed();
    admitted += passes ? 1 : 0;
  }
  return admitted;
}

struct Price {
  std::string name;
  Limit limit;
  Duration lease;
  std::uint64_t most;  // units in kRun
};

TEST(LeasePriceTest, WhatGoesUnusedIsBounded) {
  constexpr std::uint64_t kRate = 1000;  // a second, in all of them
  const auto within = [](Duration length) {
    return static_cast<std::uint64_t>(length / 1ms) * kRate / 1000;
  };
  const auto windows = [](Duration window) { return static_cast<std::uint64_t>(kRun / window); };
  std::vector<Price> prices;
  for (const Duration lease : {Duration{20ms}, Duration{100ms}}) {
    // A bucket that is asked for more than it has loses what is paid back within a lease once.
    for (const std::uint64_t burst : {1000, 300}) {
      prices.push_back({"bucket, burst " + std::to_string(burst),
                        Made(token_bucket::MakeLimit({kRate, 1s}, burst)), lease,
                        within(lease) + 100});
    }
    // An event leaves up to a lease later, in each window.
    prices.push_back({"log, 1 s", Made(sliding_window_log::MakeLimit(kRate, 1s, true)), lease,
                      (within(lease) + 100) * windows(1s)});
    prices.push_back({"log, 10 s", Made(sliding_window_log::MakeLimit(10 * kRate, 10s, true)),
                      lease, (within(lease) + 100) * windows(10s)});
    prices.push_back({"strict, 1 s", Made(sliding_window_strict::MakeLimit(kRate, 1s, 16)), lease,
                      (within(lease) + within(63ms) + 100) * windows(1s)});
    prices.push_back({"fixed window, 1 s", Made(fixed_window::MakeLimit(kRate, 1s)), lease, 100});
  }
  for (const Price& price : prices) {
    SCOPED_TRACE(price.name);
    for (const Duration apart : {Duration{250us}, Duration{2ms}}) {
      const std::uint64_t without = Admitted(price.limit, apart, 0s);
      const std::uint64_t with = Admitted(price.limit, apart, price.lease);
      std::printf(
          "%-20s leases of %3d ms, %4d requests a second: %6lu admitted of %6lu (%.2f %%)\n",
          price.name.c_str(), static_cast<int>(price.lease / 1ms), static_cast<int>(1s / apart),
          with, without, 100.0 * static_cast<double>(with) / static_cast<double>(without));
      EXPECT_LE(with, without + 100);
      EXPECT_GE(with + price.most, without);
    }
  }
}

}  // namespace
}  // namespace sluice
