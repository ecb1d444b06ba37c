// Denials of a remote store that a node remembers, so that a flood does not reach the store.
//
//   store says "limited, 42 s" to a request sent at t ──> Remember
//   same key, same limit, same or higher cost, before t + min(42 s, 1 s) ──> Recall: limited
//
// One for a node: its event loops share it, so that a key that is denied reaches the store at most
// once in min(retry_after, 1 s), apart from what was under way before the first answer.
//
// Guarantee. Whoever is recalled here was denied by the store at most kLongest before; nobody is
// admitted by it. What changes the counter elsewhere meanwhile (an undo, a new limit) is seen after
// at most kLongest; an undo on this node at once (Forget), and so what somebody elsewhere tells of
// (ForgetAll).
//
// A fixed table, never grown: an entry gives way to the next that falls on its place, and the flood
// then pays one more question. Two keys are taken for each other by nobody who does not know the
// node's hash key: 128 bits must agree.
//
// Cost: 64 bytes an entry; Recall reads one cache line, twice as many if it is at its second place.
// Thread-safety: every function from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "sluice/algorithm/decision.h"
#include "sluice/base/hash.h"
#include "sluice/base/time.h"

namespace sluice {

class DenialMemory {
 public:
  static constexpr Duration kLongest = std::chrono::seconds{1};

  // For as many as `entries`, rounded up to a power of two; at least 2.
  explicit DenialMemory(std::size_t entries);

  // `limit` tells apart the limits, and the generations of the rules, that count under one key.
  struct Name {
    Hash128 key;
    std::uint64_t limit = 0;
  };

  // `decision`: limited or never, to a request of `cost` that was sent at `sent`.
  void Remember(const Name& name, std::uint64_t cost, const Decision& decision, Time sent) noexcept;
  // The decision as of now: its waits are shorter by what has passed since.
  [[nodiscard]] std::optional<Decision> Recall(const Name& name, std::uint64_t cost,
                                               Time now) const noexcept;
  void Forget(const Name& name) noexcept;
  // All that was sent until `now`.
  void ForgetAll(Time now) noexcept;

 private:
  // Written under an odd sequence number, read between two equal even ones.
  struct alignas(64) Entry {
    std::atomic<std::uint32_t> sequence{0};
    std::atomic<std::uint32_t> left{0};  // the top bit: never; else what remains
    std::atomic<std::uint64_t> lo{0};
    std::atomic<std::uint64_t> hi{0};
    std::atomic<std::uint64_t> cost{0};
    std::atomic<std::int64_t> sent{0};   // ns
    std::atomic<std::int64_t> until{0};  // ns; 0: nothing
    std::atomic<std::int64_t> retry_after{0};
    std::atomic<std::int64_t> reset_after{0};
  };
  struct Seen {
    Hash128 key;
    std::uint64_t cost;
    std::int64_t sent;
    std::int64_t until;
    Decision decision;
  };

  [[nodiscard]] static Hash128 Mixed(const Name& name);
  [[nodiscard]] Entry& At(const Hash128& key, unsigned place) const;
  [[nodiscard]] static std::optional<Seen> Read(const Entry& entry);
  [[nodiscard]] Entry& PlaceFor(const Hash128& key) const;
  [[nodiscard]] static bool KnowsBetter(const Entry& entry, const Hash128& key, std::uint64_t cost,
                                        std::int64_t sent);

  const std::size_t mask_;
  const std::unique_ptr<Entry[]> entries_;
  std::atomic<std::int64_t> forgotten_{INT64_MIN};  // ns; what was sent until then is not recalled
};

}  // namespace sluice
