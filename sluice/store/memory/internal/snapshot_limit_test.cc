// Limits of all numbers come back equal: else a rule would not find its states under its own id.

#include "sluice/store/memory/internal/snapshot_limit.h"

#include <random>

#include "sluice/store/memory/testing/snapshot_fixture.h"

namespace sluice::memory {
namespace {

class RandomLimits {
 public:
  // Of algorithm 0 to 6; nullopt where the numbers drawn make none.
  std::optional<Limit> Next(int algorithm) {
    const std::int64_t units = Number(1'000'000);
    const Duration window{Number(std::int64_t{1} << 50)};
    switch (algorithm) {
      case 0:
        return Made(token_bucket::MakeLimit({units, window}, Count()));
      case 1:
        return Made(leaky_bucket::MakeLimit({units, window}, Count() - 1, Duration{Count() * 7}));
      case 2: {
        const bool first_hit = Number(2) == 1;
        return Made(fixed_window::MakeLimit(
            units, window, first_hit ? fixed_window::Align::kFirstHit : fixed_window::Align::kClock,
            first_hit ? Duration{0} : window / 3));
      }
      case 3: {
        absl::StatusOr<sliding_window_counter::Limit> limit =
            sliding_window_counter::MakeLimit(units, window, window / 5);
        if (limit.ok()) limit->per_key_offset = Number(2) == 1;
        return Made(limit);
      }
      case 4:
        return Made(
            calendar::MakeLimit(units, static_cast<calendar::Period>(Number(4) - 1),
                                Number(2) == 1 ? "America/Argentina/ComodRivadavia" : "UTC"));
      case 5:
        return Made(sliding_window_strict::MakeLimit(units, window, static_cast<int>(Number(60))));
      default:
        return Made(sliding_window_log::MakeLimit(units, window, Number(2) == 1));
    }
  }

 private:
  template <typename L>
  static std::optional<Limit> Made(absl::StatusOr<L> made) {
    if (!made.ok()) return std::nullopt;
    return Limit{*std::move(made)};
  }
  // From 1 to `most`, small ones as often as large ones.
  std::int64_t Number(std::int64_t most) {
    const int bits = std::uniform_int_distribution<int>(0, 63)(random_);
    const auto number = static_cast<std::int64_t>(random_() >> bits >> 1);
    return 1 + number % most;
  }
  std::uint64_t Count() { return static_cast<std::uint64_t>(Number(std::int64_t{1} << 40)); }

  std::mt19937_64 random_{20'240'229};
};

TEST_F(SnapshotTest, LimitsOfAllNumbersComeBackEqual) {
  RandomLimits random;
  std::vector<Limit> limits;
  int of_algorithm[7] = {};
  for (int i = 0; i < 20'000; ++i) {
    const std::optional<Limit> limit = random.Next(i % 7);
    if (!limit) continue;
    limits.push_back(*limit);
    ++of_algorithm[i % 7];
  }
  for (const int count : of_algorithm) EXPECT_GT(count, 500);

  absl::StatusOr<SnapshotOutput> output = SnapshotOutput::Create(path());
  ASSERT_TRUE(output.ok()) << output.status();
  std::string bytes;
  for (const Limit& limit : limits) PutLimit(bytes, limit);
  ASSERT_TRUE(output->Append(bytes).ok());
  ASSERT_TRUE(output->Commit().ok());

  absl::StatusOr<std::optional<SnapshotInput>> input = SnapshotInput::Open(path());
  ASSERT_TRUE(input.ok() && *input) << input.status();
  for (const Limit& limit : limits) {
    const Limit read = TakeLimit(**input);
    ASSERT_TRUE((*input)->ok()) << (*input)->status();
    ASSERT_EQ(read, limit) << AlgorithmName(limit);
  }
  (*input)->ExpectEnd();
  EXPECT_TRUE((*input)->ok());
}

}  // namespace
}  // namespace sluice::memory
