#include "tests/conformance/store_under_test.h"

#include <utility>

namespace sluice::conformance {
namespace {

template <typename L>
Limit Must(absl::StatusOr<L> made) {
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? Limit{*std::move(made)} : Limit{};
}

}  // namespace

void StoreConformance::Open(std::uint64_t keys, std::uint32_t concurrency_slots) {
  limits_.clear();
  open_ = std::make_unique<OpenStore>(GetParam().open(keys, concurrency_slots, clock_.Read()));
  ASSERT_NE(open_->store, nullptr);
}

const Registered& StoreConformance::Register(const Limit& limit) {
  const absl::StatusOr<LimitId> id = store().Register(limit);
  EXPECT_TRUE(id.ok()) << id.status();
  limits_.push_back(std::make_unique<Registered>(Registered{limit, id.value_or(0)}));
  return *limits_.back();
}

Claim StoreConformance::ClaimOn(std::string_view key, const Registered& limit, std::uint64_t cost,
                                ClaimKind kind) const {
  Claim claim;
  claim.key = KeyOf(key);
  claim.limit = &limit.limit;
  claim.limit_id = limit.id;
  claim.kind = kind;
  claim.cost = cost;
  return claim;
}

Claim StoreConformance::Ask(std::string_view key, const Registered& limit, std::uint64_t cost,
                            ClaimKind kind) {
  Claim claim = ClaimOn(key, limit, cost, kind);
  AskAll({&claim, 1});
  return claim;
}

bool StoreConformance::AskAll(std::span<Claim> claims) {
  ClaimGroup group{.claims = claims};
  store().Apply({&group, 1}, clock_.Read());
  return group.allowed;
}

std::uint64_t StoreConformance::Remaining(std::string_view key, const Registered& limit) {
  return Ask(key, limit, 0).decision.remaining;
}

Limit TokenBucket(std::int64_t count, Duration period, std::uint64_t burst) {
  return Must(token_bucket::MakeLimit({count, period}, burst));
}
Limit LeakyBucket(std::int64_t count, Duration period, std::uint64_t queue, Duration wait) {
  return Must(leaky_bucket::MakeLimit({count, period}, queue, wait));
}
Limit FixedWindow(std::int64_t limit, Duration window, fixed_window::Align align) {
  return Must(fixed_window::MakeLimit(limit, window, align));
}
Limit SlidingCounter(std::int64_t limit, Duration window) {
  return Must(sliding_window_counter::MakeLimit(limit, window));
}
Limit SlidingLog(std::int64_t limit, Duration window, bool weighted) {
  return Must(sliding_window_log::MakeLimit(limit, window, weighted));
}
Limit StrictCounter(std::int64_t limit, Duration window, int sub_windows) {
  return Must(sliding_window_strict::MakeLimit(limit, window, sub_windows));
}
Limit Calendar(std::int64_t limit, calendar::Period period) {
  return Must(calendar::MakeLimit(limit, period, "UTC"));
}
Limit Concurrency(std::int64_t limit, Duration slot_ttl) {
  return Must(concurrency::MakeLimit(limit, slot_ttl));
}

std::vector<NamedLimit> EveryRate(std::int64_t limit, Duration window) {
  using fixed_window::Align;
  Limit phased = FixedWindow(limit, window);
  std::get<fixed_window::Limit>(phased).per_key_offset = true;
  return {
      {"token bucket", TokenBucket(limit, window, static_cast<std::uint64_t>(limit))},
      {"leaky bucket", LeakyBucket(limit, window, static_cast<std::uint64_t>(limit) - 1, window)},
      {"fixed window", FixedWindow(limit, window)},
      {"fixed window, edges of its own per key", phased},
      {"fixed window from the first hit", FixedWindow(limit, window, Align::kFirstHit)},
      {"sliding counter", SlidingCounter(limit, window)},
      {"sliding log", SlidingLog(limit, window)},
      {"sliding log with costs", SlidingLog(limit, window, true)},
      {"strict counter", StrictCounter(limit, window)},
      {"strict counter of 60", StrictCounter(limit, window, 60)},
      {"calendar", Calendar(limit, calendar::Period::kDay)}};
}

}  // namespace sluice::conformance
