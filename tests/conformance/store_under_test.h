// The suite that every store must pass, and what a store brings to be put through it.
//
//   INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance, ::testing::Values(StoreKind{...}));
//
// in a file of its own for each store, linked with this library. Every store passes
// StoreConformance; what not every store can promise stands in suites of their own, so that the
// file of each kind says which it does not run, and why:
//
//   BoundedStoreConformance   more keys than there is room for
//   LocalStoreConformance     a store that knows which limits are in use
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/hash.h"
#include "sluice/store/store.h"

namespace sluice::conformance {

// A store with the hash of its keys.
struct OpenStore {
  std::unique_ptr<Store> store;
  std::function<Hash128(std::string_view)> hash_key;
};

struct StoreKind {
  std::string name;
  // A fresh store with room for at least `keys` keys (about twice as many table slots), and for so
  // many concurrency slots.
  std::function<OpenStore(std::uint64_t keys, std::uint32_t concurrency_slots, Now now)> open;
  Duration tick{1};  // of its clock
  // Whether its clock can show this instant; and of how many vectors it can show all, at least.
  std::function<bool(Now)> shows = [](Now) { return true; };
  int vectors = 80;
  int cost_of_call = 1;  // compared with memory's: long tests are shorter by it
};

// A limit under which the test asks, and its id.
struct Registered {
  Limit limit;
  LimitId id = 0;
};

inline void PrintTo(const StoreKind& kind, std::ostream* out) { *out << kind.name; }

class StoreConformance : public ::testing::TestWithParam<StoreKind> {
 protected:
  // Opens the store; a test that needs another size calls it again before anything else.
  void SetUp() override { Open(10'000, 1'000); }
  void Open(std::uint64_t keys, std::uint32_t concurrency_slots);

  [[nodiscard]] Store& store() { return *open_->store; }
  [[nodiscard]] Hash128 KeyOf(std::string_view name) const { return open_->hash_key(name); }

  // Stays at its place until the end of the test.
  const Registered& Register(const Limit& limit);

  // Keys are named for the test: the same name under two limits is one key, as one rule's key is
  // under its old and its new numbers.
  [[nodiscard]] Claim ClaimOn(std::string_view key, const Registered& limit, std::uint64_t cost = 1,
                              ClaimKind kind = ClaimKind::kBinding) const;
  // One request with one claim; the claim comes back with decision and receipt.
  Claim Ask(std::string_view key, const Registered& limit, std::uint64_t cost = 1,
            ClaimKind kind = ClaimKind::kBinding);
  // One request with several claims. True: it is allowed.
  bool AskAll(std::span<Claim> claims);
  // What is left for a key, without a charge.
  std::uint64_t Remaining(std::string_view key, const Registered& limit);

  // `count`, or a part of it where calls are dear.
  [[nodiscard]] static int Few(int count) { return std::max(1, count / GetParam().cost_of_call); }
  // Whole ticks.
  [[nodiscard]] static Duration Whole(Duration time) { return time - time % GetParam().tick; }

  ManualClock clock_;

 private:
  std::unique_ptr<OpenStore> open_;
  std::vector<std::unique_ptr<Registered>> limits_;
};

class BoundedStoreConformance : public StoreConformance {};
class LocalStoreConformance : public StoreConformance {};

// Limits that must be good, so that tests read as tables.
[[nodiscard]] Limit TokenBucket(std::int64_t count, Duration period, std::uint64_t burst);
[[nodiscard]] Limit LeakyBucket(std::int64_t count, Duration period, std::uint64_t queue,
                                Duration wait);
[[nodiscard]] Limit FixedWindow(std::int64_t limit, Duration window,
                                fixed_window::Align align = fixed_window::Align::kClock);
[[nodiscard]] Limit SlidingCounter(std::int64_t limit, Duration window);
[[nodiscard]] Limit SlidingLog(std::int64_t limit, Duration window, bool weighted = false);
[[nodiscard]] Limit StrictCounter(std::int64_t limit, Duration window, int sub_windows = 16);
[[nodiscard]] Limit Calendar(std::int64_t limit, calendar::Period period);
[[nodiscard]] Limit Concurrency(std::int64_t limit, Duration slot_ttl = Duration{0});

// One of every algorithm, of `limit` units in `window` (a day for the calendar), and of each way in
// which a store may keep it: large limits, logs with costs.
struct NamedLimit {
  std::string name;
  Limit limit;
};
[[nodiscard]] std::vector<NamedLimit> EveryRate(std::int64_t limit, Duration window);

}  // namespace sluice::conformance
