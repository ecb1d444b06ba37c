#include "sluice/limiter/denial_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr Time kSent{100s};

DenialMemory::Name Named(std::uint64_t n, std::uint64_t limit = 1) {
  std::mt19937_64 random(n);
  return {.key = {.lo = random(), .hi = random()}, .limit = limit};
}

Decision Limited(Duration retry_after, std::uint64_t remaining = 0) {
  return {.verdict = Verdict::kLimited,
          .remaining = remaining,
          .retry_after = retry_after,
          .reset_after = retry_after + 10s};
}

TEST(DenialMemoryTest, ADenialIsRememberedForItsWaitButAtMostASecond) {
  const struct {
    Duration retry_after;
    Duration kept;
  } cases[] = {{42s, 1s}, {1s, 1s}, {300ms, 300ms}, {1ns, 1ns}};
  for (const auto& [retry_after, kept] : cases) {
    DenialMemory memory(16);
    memory.Remember(Named(1), 1, Limited(retry_after), kSent);
    EXPECT_TRUE(memory.Recall(Named(1), 1, kSent + kept - 1ns));
    EXPECT_FALSE(memory.Recall(Named(1), 1, kSent + kept));
  }
}

TEST(DenialMemoryTest, ItsWaitsAreShorterByWhatHasPassedSinceItWasSent) {
  DenialMemory memory(16);
  memory.Remember(Named(1), 3, Limited(5s, 2), kSent);
  const std::optional<Decision> told = memory.Recall(Named(1), 3, kSent + 400ms);
  ASSERT_TRUE(told);
  EXPECT_EQ(*told, (Decision{.verdict = Verdict::kLimited,
                             .remaining = 2,
                             .retry_after = 4600ms,
                             .reset_after = 14600ms}));
  // Another thread's clock, read a moment before.
  EXPECT_EQ(memory.Recall(Named(1), 3, kSent - 1ms)->retry_after, 5s);
}

TEST(DenialMemoryTest, AllThatWasSentUntilAnInstantCanBeForgotten) {
  DenialMemory memory(16);
  memory.Remember(Named(1), 1, Limited(5s), kSent);
  memory.Remember(Named(2), 1, Limited(5s), kSent + 2ms);
  memory.ForgetAll(kSent + 1ms);
  EXPECT_FALSE(memory.Recall(Named(1), 1, kSent + 3ms));
  EXPECT_TRUE(memory.Recall(Named(2), 1, kSent + 3ms));
  memory.Remember(Named(1), 1, Limited(5s), kSent + 4ms);
  EXPECT_TRUE(memory.Recall(Named(1), 1, kSent + 5ms));
}

TEST(DenialMemoryTest, ACostThatIsNeverMetStaysNever) {
  DenialMemory memory(16);
  memory.Remember(Named(1), 9, {.verdict = Verdict::kNever, .retry_after = kNever}, kSent);
  const std::optional<Decision> told = memory.Recall(Named(1), 9, kSent + 999ms);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->verdict, Verdict::kNever);
  EXPECT_EQ(told->retry_after, kNever);
  EXPECT_FALSE(memory.Recall(Named(1), 9, kSent + 1s));
}

TEST(DenialMemoryTest, NothingIsKeptWhereNobodyKnowsTheWait) {
  DenialMemory memory(16);
  memory.Remember(Named(1), 1, Limited(kUnknown), kSent);
  EXPECT_FALSE(memory.Recall(Named(1), 1, kSent));
}

TEST(DenialMemoryTest, OnlyAsHighACostOfTheSameLimitAndKeyIsDenied) {
  DenialMemory memory(16);
  memory.Remember(Named(1), 3, Limited(5s), kSent);
  EXPECT_TRUE(memory.Recall(Named(1), 4, kSent));
  EXPECT_FALSE(memory.Recall(Named(1), 2, kSent));
  EXPECT_FALSE(memory.Recall(Named(1, /*limit=*/2), 3, kSent));
  EXPECT_FALSE(memory.Recall(Named(2), 3, kSent));
}

TEST(DenialMemoryTest, WhatIsForgottenIsAskedForAgain) {
  DenialMemory memory(16);
  memory.Remember(Named(1), 1, Limited(5s), kSent);
  memory.Remember(Named(2), 1, Limited(5s), kSent);
  memory.Forget(Named(1));
  EXPECT_FALSE(memory.Recall(Named(1), 1, kSent));
  EXPECT_TRUE(memory.Recall(Named(2), 1, kSent));
}

TEST(DenialMemoryTest, AnAnswerThatIsLateDoesNotReplaceWhatWasAskedForAfterIt) {
  DenialMemory memory(16);
  memory.Remember(Named(1), 2, Limited(5s, 1), kSent + 20ms);
  memory.Remember(Named(1), 2, Limited(6s, 0), kSent);
  EXPECT_EQ(memory.Recall(Named(1), 2, kSent + 1010ms)->remaining, 1u);
  // Of a lower cost it says more than was known.
  memory.Remember(Named(1), 1, Limited(5s), kSent);
  EXPECT_TRUE(memory.Recall(Named(1), 1, kSent + 500ms));
  // What was forgotten is not known.
  memory.Forget(Named(1));
  memory.Remember(Named(1), 3, Limited(5s), kSent - 1ms);
  EXPECT_TRUE(memory.Recall(Named(1), 3, kSent));
}

TEST(DenialMemoryTest, ALaterDenialTakesThePlaceOfTheOneThatEndsFirst) {
  DenialMemory memory(2);  // two keys share both places
  memory.Remember(Named(1), 1, Limited(5s), kSent);
  for (std::uint64_t n = 2; n < 100; ++n) {
    memory.Remember(Named(n), 1, Limited(5s), kSent + std::chrono::milliseconds(n));
    EXPECT_TRUE(memory.Recall(Named(n), 1, kSent + std::chrono::milliseconds(n)));
  }
  EXPECT_FALSE(memory.Recall(Named(1), 1, kSent));
}

// Each writer's entries agree in all of their fields, so a reader that saw two mixed would tell.
TEST(DenialMemoryTest, WhatOneThreadReadsAnotherWroteAsAWhole) {
  DenialMemory memory(2);
  std::atomic<bool> stop = false;
  std::vector<std::thread> writers;
  for (std::uint64_t w = 1; w <= 2; ++w) {
    writers.emplace_back([&, w] {
      for (std::uint64_t n = w; !stop; n += 2) {
        const auto wait = std::chrono::seconds(1 + n % 1000);
        memory.Remember(Named(7), 1 + n % 1000, Limited(wait, 1 + n % 1000), kSent);
      }
    });
  }
  for (int i = 0, seen = 0; i < 300'000 || seen < 1000; ++i) {
    const std::optional<Decision> told = memory.Recall(Named(7), 5000, kSent);
    if (!told) continue;
    ++seen;
    ASSERT_EQ(told->retry_after, std::chrono::seconds(told->remaining));
    ASSERT_EQ(told->reset_after, told->retry_after + 10s);
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
}

}  // namespace
}  // namespace sluice
