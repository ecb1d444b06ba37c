// The vectors through the pure functions.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sluice/algorithm/testing/pure_key.h"
#include "tests/vectors/vector_run.h"

namespace sluice::vectors {
namespace {

using sluice::testing::PureKey;

// A vector's limits, each with a key of its own.
class PureSubject final : public Subject {
 public:
  explicit PureSubject(const std::vector<Limit>& limits) : keys_(limits.begin(), limits.end()) {}

  std::vector<Decision> Acquire(std::uint64_t cost, Now now) override {
    std::vector<Decision> decisions = Look(cost, now);
    for (const Decision& decision : decisions) {
      if (!decision.allowed()) return decisions;
    }
    decisions.clear();
    std::vector<Receipt> receipts;
    for (PureKey& key : keys_) {
      const PureKey::Answer answer = key.Acquire(cost, now);
      decisions.push_back(answer.decision);
      receipts.push_back(answer.receipt);
    }
    if (cost > 0) charges_.push_back(receipts);
    return decisions;
  }

  // After a denial a limit that had room tells what is left, not what would be left.
  std::vector<Decision> Look(std::uint64_t cost, Now now) override {
    std::vector<Decision> decisions;
    bool allowed = true;
    for (const PureKey& key : keys_) {
      decisions.push_back(key.Look(cost, now));
      allowed = allowed && decisions.back().allowed();
    }
    for (std::size_t i = 0; !allowed && i < keys_.size(); ++i) {
      if (decisions[i].allowed()) decisions[i] = keys_[i].Look(0, now);
    }
    return decisions;
  }

  std::vector<Decision> Force(std::uint64_t cost, Now now) override {
    const PureKey::Answer answer = keys_.front().Force(cost, now, ~std::uint64_t{0});
    charges_.push_back({answer.receipt});
    return {answer.decision};
  }

  void Undo(int charge, std::uint64_t units, Now now) override {
    std::vector<Receipt>& receipts = charges_.at(static_cast<std::size_t>(charge - 1));
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      keys_[i].Undo(receipts[i], units, now);
      receipts[i].units -= units;
    }
  }

  bool Release(int charge, Now now) override {
    const Receipt& receipt = charges_.at(static_cast<std::size_t>(charge - 1)).front();
    return keys_.front().Undo(receipt, receipt.units, now);
  }

  void Resize(const Limit& limit) override { keys_.front().Convert(limit, Now{}); }

 private:
  std::vector<PureKey> keys_;
  std::vector<std::vector<Receipt>> charges_;
};

void RunAll(std::string_view path, std::size_t expected_count) {
  std::size_t count = 0;
  for (Vector& vector : Read(path).vectors) {
    if (vector.later) continue;
    ++count;
    PureSubject subject(vector.limits);
    Run(vector, subject, ResolutionOf(vector));
    if (auto* log = std::get_if<sliding_window_log::Limit>(&vector.limits.front())) {
      log->weighted = true;  // the other form of the log answers the same
      PureSubject weighted(vector.limits);
      Run(vector, weighted, ResolutionOf(vector));
    }
  }
  EXPECT_EQ(count, expected_count);
}

TEST(VectorsTest, EveryAlgorithmAnswersAsItsVectorsSay) {
  RunAll("tests/vectors/algorithms.json", 55);
}

TEST(VectorsTest, CalendarAndStrictCounterAnswerAsTheirVectorsSay) {
  RunAll("tests/vectors/calendar_and_strict.json", 26);
}

TEST(VectorsTest, ImpossibleLimitsAreRefusedWithTheReason) {
  const std::map<std::string, std::string> messages = {
      {"rate_must_be_positive", "rate must be positive, got"},
      {"period_must_be_positive", "period must be positive, got 0"},
      {"burst_must_be_positive", "burst must be positive, got 0"},
      {"burst_window_overflow", "burst is too long to pay back"},
      {"window_must_be_positive", "window must be positive, got 0"},
      {"limit_must_be_non_negative", "limit must not be negative, got -1"},
      {"limit_exceeds_log_capacity", "limit exceeds log capacity"},
  };
  const VectorFile file = Read("tests/vectors/algorithms.json");
  EXPECT_EQ(file.validation.size(), 10U);
  for (const Validation& row : file.validation) {
    SCOPED_TRACE(row.id);
    if (row.error.empty()) {
      EXPECT_TRUE(row.made.ok()) << row.made.status();
      continue;
    }
    EXPECT_EQ(row.made.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(row.made.status().ToString().find(messages.at(row.error)), std::string::npos)
        << row.made.status();
  }
}

}  // namespace
}  // namespace sluice::vectors
