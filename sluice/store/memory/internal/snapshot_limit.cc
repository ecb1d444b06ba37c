#include "sluice/store/memory/internal/snapshot_limit.h"

#include <cassert>
#include <cstdint>
#include <limits>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "sluice/store/memory/internal/snapshot_bytes.h"

namespace sluice::memory {
namespace {

// Part of the format: never renumbered.
enum class Kind : std::uint8_t {
  kTokenBucket = 1,
  kLeakyBucket = 2,
  kFixedWindow = 3,
  kSlidingCounter = 4,
  kCalendar = 5,
  kSlidingStrict = 6,
  kSlidingLog = 7,
};

// A bucket with its derived ticks. `burst` is what MakeLimit() is to be called with.
void PutBucket(std::string& out, const token_bucket::Limit& limit, std::uint64_t burst) {
  PutI64(out, limit.rate.count);
  PutI64(out, limit.rate.period.count());
  PutU64(out, burst);
  PutU8(out, limit.ticks_per_ns);
  PutI64(out, limit.interval);
}

// The burst that a leaky bucket's pace was made with, of which only the last instant is left; where
// several lead to the same last instant, any of them is as good.
std::uint64_t BurstOfPace(const token_bucket::Limit& pace) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::uint64_t>((kMost - pace.last_ns * pace.ticks_per_ns) / 2 / pace.interval);
}

struct Writer {
  std::string& out;

  void operator()(const token_bucket::Limit& limit) const {
    Begin(Kind::kTokenBucket);
    PutBucket(out, limit, limit.burst);
  }
  void operator()(const leaky_bucket::Limit& limit) const {
    Begin(Kind::kLeakyBucket);
    PutBucket(out, limit.pace, BurstOfPace(limit.pace));
    PutI64(out, limit.max_delay);
  }
  void operator()(const fixed_window::Limit& limit) const {
    Begin(Kind::kFixedWindow);
    PutU64(out, limit.limit);
    PutI64(out, limit.window.count());
    PutU8(out, limit.align == fixed_window::Align::kFirstHit ? 1 : 0);
    PutI64(out, limit.offset.count());
    PutU8(out, limit.per_key_offset ? 1 : 0);
  }
  void operator()(const sliding_window_counter::Limit& limit) const {
    Begin(Kind::kSlidingCounter);
    PutU64(out, limit.limit);
    PutI64(out, limit.window.count());
    PutI64(out, limit.offset.count());
    PutU8(out, limit.per_key_offset ? 1 : 0);
  }
  void operator()(const calendar::Limit& limit) const {
    Begin(Kind::kCalendar);
    PutU64(out, limit.limit);
    PutU8(out, static_cast<std::uint8_t>(limit.period));
    PutU8(out, static_cast<std::uint8_t>(limit.zone_name.size()));
    out.append(limit.zone_name);
  }
  void operator()(const sliding_window_strict::Limit& limit) const {
    Begin(Kind::kSlidingStrict);
    PutU64(out, limit.limit);
    PutI64(out, limit.window.count());
    PutU8(out, static_cast<std::uint8_t>(limit.sub_windows));
  }
  void operator()(const sliding_window_log::Limit& limit) const {
    Begin(Kind::kSlidingLog);
    PutU64(out, limit.limit);
    PutI64(out, limit.window.count());
    PutU8(out, limit.weighted ? 1 : 0);
    PutI64(out, limit.tick.count());
  }
  void operator()(const concurrency::Limit&) const { assert(false && "never in a snapshot"); }

  void Begin(Kind kind) const { PutU8(out, static_cast<std::uint8_t>(kind)); }
};

// Reads the numbers of one limit; whatever is wrong with them is told through the input.
class Reader {
 public:
  explicit Reader(SnapshotInput& input) : input_(input) {}

  Limit Read() {
    switch (static_cast<Kind>(input_.U8())) {
      case Kind::kTokenBucket:
        return Bucket();
      case Kind::kLeakyBucket:
        return Leaky();
      case Kind::kFixedWindow:
        return Fixed();
      case Kind::kSlidingCounter:
        return Counter();
      case Kind::kCalendar:
        return Calendar();
      case Kind::kSlidingStrict:
        return Strict();
      case Kind::kSlidingLog:
        return Log();
    }
    input_.Fail("has a limit of an unknown algorithm");
    return {};
  }

 private:
  // The limit, or a complaint about it.
  template <typename L>
  L Good(const absl::StatusOr<L>& made) {
    if (made.ok()) return *made;
    input_.Fail(absl::StrCat("has an impossible limit: ", made.status().message()));
    return L{};
  }
  Duration Length() { return Duration{input_.I64()}; }
  std::int64_t Units() { return input_.I64(); }
  bool Flag() {
    const std::uint8_t flag = input_.U8();
    if (flag > 1) input_.Fail("has an impossible limit: a flag that is neither 0 nor 1");
    return flag == 1;
  }
  void Compare(std::int64_t read, std::int64_t derived) {
    if (read == derived) return;
    input_.Fail(absl::StrCat("has a limit that counts in other ticks than this version: ", read,
                             " instead of ", derived));
  }

  token_bucket::Limit Bucket() {
    const std::int64_t count = input_.I64();
    const Duration period = Length();
    const std::uint64_t burst = input_.U64();
    auto limit = Good(token_bucket::MakeLimit({count, period}, burst));
    Compare(input_.U8(), limit.ticks_per_ns);
    Compare(input_.I64(), limit.interval);
    return limit;
  }

  leaky_bucket::Limit Leaky() {
    leaky_bucket::Limit limit{.pace = Bucket(), .max_delay = input_.I64()};
    const std::int64_t longest = limit.pace.capacity - limit.pace.interval;
    if (limit.max_delay < 0 ||
        limit.max_delay / limit.pace.interval > longest / limit.pace.interval) {
      input_.Fail("has an impossible limit: a queue that is longer than its ticks allow");
      return {};
    }
    limit.max_cost = static_cast<std::uint64_t>(limit.max_delay / limit.pace.interval) + 1;
    limit.pace.burst = limit.max_cost;
    limit.pace.capacity = static_cast<std::int64_t>(limit.max_cost) * limit.pace.interval;
    return limit;
  }

  fixed_window::Limit Fixed() {
    const std::int64_t units = Units();
    const Duration window = Length();
    const auto align = Flag() ? fixed_window::Align::kFirstHit : fixed_window::Align::kClock;
    const Duration offset = Length();
    auto limit = Good(fixed_window::MakeLimit(units, window, align, offset));
    limit.per_key_offset = Flag();
    return limit;
  }

  sliding_window_counter::Limit Counter() {
    const std::int64_t units = Units();
    const Duration window = Length();
    const Duration offset = Length();
    auto limit = Good(sliding_window_counter::MakeLimit(units, window, offset));
    limit.per_key_offset = Flag();
    return limit;
  }

  calendar::Limit Calendar() {
    const std::int64_t units = Units();
    const std::uint8_t period = input_.U8();
    if (period > static_cast<std::uint8_t>(calendar::Period::kYear)) {
      input_.Fail("has an impossible limit: an unknown period of the calendar");
    }
    std::string zone(input_.U8(), '\0');
    for (char& c : zone) c = static_cast<char>(input_.U8());
    if (!input_.ok()) return {};
    return Good(calendar::MakeLimit(units, static_cast<calendar::Period>(period), zone));
  }

  sliding_window_strict::Limit Strict() {
    const std::int64_t units = Units();
    const Duration window = Length();
    return Good(sliding_window_strict::MakeLimit(units, window, input_.U8()));
  }

  sliding_window_log::Limit Log() {
    const std::int64_t units = Units();
    const Duration window = Length();
    auto limit = Good(sliding_window_log::MakeLimit(units, window, Flag()));
    Compare(input_.I64(), limit.tick.count());
    return limit;
  }

  SnapshotInput& input_;
};

}  // namespace

void PutLimit(std::string& out, const Limit& limit) { std::visit(Writer{out}, limit); }

Limit TakeLimit(SnapshotInput& input) { return Reader(input).Read(); }

}  // namespace sluice::memory
