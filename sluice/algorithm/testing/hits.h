// Tables of hits: a moment, a cost, and what must come of it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/algorithm/testing/pure_key.h"
#include "sluice/algorithm/testing/trace.h"

namespace sluice::testing {

struct Hit {
  Duration at;  // from an epoch-aligned start
  std::uint64_t cost = 1;
  bool allowed = true;
  std::optional<std::uint64_t> remaining = std::nullopt;
  std::optional<Duration> wait = std::nullopt;
};

// 500 weeks after the epoch: windows of any usual length begin at it.
inline constexpr Duration kAligned = std::chrono::hours{24 * 7 * 500};

inline void Expect(PureKey& key, const std::vector<Hit>& hits) {
  for (std::size_t i = 0; i < hits.size(); ++i) {
    SCOPED_TRACE("hit " + std::to_string(i));
    const Decision decision = key.Acquire(hits[i].cost, At(kAligned + hits[i].at)).decision;
    EXPECT_EQ(decision.allowed(), hits[i].allowed);
    if (hits[i].remaining) {
      EXPECT_EQ(decision.remaining, *hits[i].remaining);
    }
    if (hits[i].wait) {
      EXPECT_EQ(decision.retry_after, *hits[i].wait);
    }
  }
}

// "AAD": one hit of cost 1 at each moment, allowed or denied.
inline std::string Verdicts(PureKey& key, const std::vector<Duration>& moments) {
  std::string verdicts;
  for (const Duration at : moments) {
    verdicts += key.Acquire(1, At(kAligned + at)).decision.allowed() ? 'A' : 'D';
  }
  return verdicts;
}

// How many of `count` hits, `apart` from each other, are allowed.
inline int CountAllowed(PureKey& key, Duration start, Duration apart, int count) {
  int allowed = 0;
  for (int i = 0; i < count; ++i) {
    allowed += key.Acquire(1, At(kAligned + start + i * apart)).decision.allowed() ? 1 : 0;
  }
  return allowed;
}

}  // namespace sluice::testing
