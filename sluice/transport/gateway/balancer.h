// Which of several upstreams gets a request, by weight and by how they have answered so far.
//
//   weights a 5, b 1, c 1     a a b a c a a | a a b a c a a | ...
//
// Smooth weighted round robin: in each turn every upstream gains its weight, the one that has most
// is chosen and pays the sum of all weights. After any number of turns each was chosen as often as
// its weight says, give or take the number of the others, and the heavy ones are spread rather than
// served in a block.
//
// Passive health: an upstream that failed `failures` times in a row, whatever others did meanwhile,
// is left out for `rest`; then requests try it again, and the next failure sends it back to rest at
// once. When all are resting, the one whose rest ends first is tried: a request is never refused
// for want of a healthy upstream.
//
// Active checks (health_checks.h) have their own word: one that they found down is left out while
// another is up, resting or not; when all are down they are as good as if all were up. The two do
// not meddle with each other: neither a check that passes ends a rest, nor an answer makes one up.
//
// Each event loop has a balancer of its own and finds out for itself. For one thread.
//
// Cost: linear in the number of upstreams; with one upstream nothing. No allocation.
// Source: the smooth form of weighted round robin is the one of nginx (2012).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/base/time.h"

namespace sluice::gateway {

class Balancer {
 public:
  struct Options {
    int failures = 3;  // in a row; at least 1
    Duration rest = std::chrono::seconds{10};
    friend bool operator==(const Options&, const Options&) = default;
  };
  static constexpr std::size_t kMaxUpstreams = 64;
  using Tried = std::uint64_t;  // a bit for each upstream

  // `weights`: one for each upstream, 1 to kMaxUpstreams of them, each at least 1.
  Balancer(std::vector<std::uint32_t> weights, Options options);

  // The upstream for the next request. `tried` are left out, as long as another is there.
  [[nodiscard]] std::size_t Choose(Time now, Tried tried = 0);

  // What came of a request to `upstream`. True: it goes to rest with this, or comes back from it.
  bool Failed(std::size_t upstream, Time now);
  bool Succeeded(std::size_t upstream);

  // What active checks say of it. Not down at first.
  void SetDown(std::size_t upstream, bool down) { upstreams_[upstream].down = down; }

  // Whether it is left out just now for its failures.
  [[nodiscard]] bool resting(std::size_t upstream, Time now) const;
  [[nodiscard]] std::size_t size() const { return upstreams_.size(); }

  // Goes on with what `other` knows of an upstream of its own. True: it is at rest.
  bool TakeOver(std::size_t upstream, const Balancer& other, std::size_t others);

 private:
  struct Upstream {
    std::int64_t weight = 1;
    std::int64_t credit = 0;
    int failures = 0;  // in a row
    Time rests_until = Time::min();
    bool down = false;
  };

  const Options options_;
  std::vector<Upstream> upstreams_;
};

}  // namespace sluice::gateway
