// `block_for` of a rule: who was over it stays out for a while, as after too many failed logins.
//
//   denied at d for want of room                         d + block_for
//    |-------- every request with this key is denied by this rule --------|  as the algorithm says
//        (what is tried meanwhile does not lengthen it)
//
// A block begins when a rule says `limited` to a request that is no look. It is kept as a second
// key of the same store, made of the first one's hash, so that it is bounded, evicted, saved and
// carried over a reload as every other key: a token bucket that one request empties and block_for
// fills again.
//
//   capacity = block_for, one unit a nanosecond; a denial takes all of it
//   blocked   <=> something is owed; the block ends when nothing is
//
// A request with rules that block goes to the store three times: a look at the blocks; the claims
// themselves, where those of a blocked key are only decided on (and charged if the rule charges
// denials); and the blocks that begin. What a blocked rule says is that it is limited, nothing
// remains, and the wait is until the later of the block's end and the instant at which the
// algorithm has room.
//
// Guarantee. Let a block begin with a denial that was decided at d. Then no request whose check
// begins after that denial was answered, and is decided before d + block_for, passes the rule with
// that key. Of several denials that are decided at the same time on several threads one begins the
// block; each of them tells the wait until its end.
//
//   answered "limited" at d, the block begins   ==>   no pass decided in [d, d + block_for)
//
// All that passes, passes by the algorithm: a rule with block_for decides, outside of its blocks,
// as it would without if the requests inside of them had never come (or, with charge_denied, had
// been charged and denied). So in every stretch at most as much passes as the algorithm promises.
//
// A cost that can never be met begins no block, nor does a missing key, nor the denial of another
// rule alone. A shadow rule's blocks are recorded and deny nobody. To undo a request, or finish it,
// leaves blocks alone.
//
// Reload: blocks are kept by the rule's name. A running block keeps its end, but lasts at most the
// new block_for from the key's next request (for up to ten seconds more while both rule sets are in
// force, see Settling in store/memory). Without block_for nobody is blocked; those that still run
// count again if it comes back.
//
// Clock: steady; one that steps back blocks for longer. Snapshot: as every key.
//
// Eviction: a block owes its nanoseconds as units, more than nearly any other key, so a flood of
// new keys does not lift it. It costs its owner a whole limit, and takes one key of the store's.
//
// Cost: two visits to the store and a hash more for each such rule; rules without it pay nothing. A
// batch is decided request by request when any rule has it, since a denial in it blocks what
// follows. No allocation once the buffers have grown.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sluice/base/hash.h"
#include "sluice/limiter/outcome.h"
#include "sluice/rule/request.h"
#include "sluice/store/store.h"

namespace sluice {

// What a rule says of a request whose key is blocked for `wait` from now. That the cost can never
// be met tells more, and stays.
void ExtendToBlock(Decision& decision, Duration wait);

// For what counts in memory; in a remote store blocks are asked for together with the counters
// (remote_checks.h). One for each limiter, that is, for each thread.
class Blocks {
 public:
  // Both outlive this.
  Blocks(Store& store, const HashKey& hash_key) : store_(store), hash_key_(hash_key) {}

  // Decides on claims of one request, [begin, end) of the outcome's, as Store::Apply does, with the
  // blocks of their rules. The outcome has its results, and its claims with their keys; all in this
  // range count in memory.
  void Apply(const LimitRequest& request, Outcome& outcome, std::size_t begin, std::size_t end,
             Now now);

 private:
  // The block of one claim, as a claim of its own, and the result whose claim it is.
  struct Watched {
    const RuleResult* result;
    Claim* claim;
  };

  void Find(Outcome& outcome, std::size_t begin, std::size_t end);
  // Those that are blocked are not charged, nor is a request that one of them denies.
  void Withhold(std::span<Claim> claims);
  void ApplyGroup(std::span<Claim> claims, Now now);
  void Settle(std::size_t index, const LimitRequest& request, Now now);

  Store& store_;
  const HashKey& hash_key_;
  // Of the request at hand, one for each claim whose rule blocks.
  std::vector<Watched> watched_;
  std::vector<Claim> blocks_;
};

}  // namespace sluice
