// Where simulated servers and nodes begin, and what they count in.
#pragma once

#include <chrono>
#include <memory>

#include "gtest/gtest.h"
#include "sluice/base/hash.h"
#include "sluice/base/time.h"
#include "sluice/store/memory/memory_store.h"

namespace sluice::simulation {

// Three hours after the epochs, so that every clock may be minutes behind.
inline constexpr Now kStart{Time{std::chrono::hours{3}}, WallTime{std::chrono::hours{3}}};

// With a key that is the same in each run.
inline std::unique_ptr<MemoryStore> OpenStore(Now now) {
  auto opened = MemoryStore::Open(
      {.max_keys = 10'000, .hash_key = HashKey(HashKind::kSipHash13, {1, 2, 3})}, now);
  EXPECT_TRUE(opened.ok()) << opened.status();
  return *std::move(opened);
}

}  // namespace sluice::simulation
