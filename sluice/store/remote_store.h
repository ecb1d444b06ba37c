// A store that several nodes share, as the engine sees it: it answers later, or not at all.
//
//   group:  [binding][binding][shadow] ──Apply──> ... ──> done(OK): decisions and receipts
//                                                   `──> done(why not): the failure modes answer
//
// Apply() promises what Store::Apply() promises, over all nodes: every binding claim of a group is
// charged or none. Whose clock counts, and what is lost with a server, says docs/redis.md.
//
// Thread-safety: a RemoteStore belongs to one event loop, as whoever calls it does.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/algorithm/limit.h"
#include "sluice/base/time.h"
#include "sluice/store/store.h"

namespace sluice {

// A limit in the form in which a remote store knows it. Immutable; any number of threads. What
// waits in a store to be given back shares in it, so that it outlives the rules that it came with.
class RemoteLimit : public std::enable_shared_from_this<RemoteLimit> {
 public:
  virtual ~RemoteLimit() = default;
  // What decides: the limit that was asked for, in the store's precision.
  [[nodiscard]] virtual const Limit& limit() const = 0;
};

struct RemoteClaim {
  // What the key is made of, as RuleSet writes it.
  std::string_view key;
  // What lies under it: a counter, or the block that begins when the counter denies
  // (limiter/blocks.h).
  bool block = false;
  const RemoteLimit* limit = nullptr;
  ClaimKind kind = ClaimKind::kBinding;
  bool charge_denied = false;  // as Claim::charge_denied
  std::uint64_t cost = 1;      // 0: only look
  // > 0: a lease, of `cost` units that this node spends on whom it admits, at any time within so
  // long from the moment of asking. They are charged as of the lease's end, so that every stretch
  // keeps its bound whenever they are spent; room is looked for at now. Longer than LongestLease()
  // is cut to that. Only for a binding claim that is alone in its group, is no block and does not
  // charge denials, and under a limit of which CanLease() says so.
  Duration lease{0};

  // Denied, a lease charges nothing, and the decision says what remains for a charge of now, and
  // how long until this lease passes. Granted: what remains beside it.
  Decision decision;
  Receipt receipt;  // units 0: nothing charged
  // Of a lease that was granted: for how long from the moment of asking (Apply's call, at the
  // latest) its units may be spent. At most `lease`; less where the window that they were charged
  // to ends.
  Duration good_for{0};
};

// The claims of one request, at least one; no two on the same key.
struct RemoteGroup {
  std::span<RemoteClaim> claims;
  bool allowed = false;  // every binding and look claim had room
};

class RemoteStore {
 public:
  virtual ~RemoteStore() = default;

  // From any thread. InvalidArgument: numbers that this store can't hold.
  [[nodiscard]] virtual absl::StatusOr<std::shared_ptr<const RemoteLimit>> Prepare(
      const Limit& limit) const = 0;

  using Done = absl::AnyInvocable<void(const absl::Status&)>;
  // Decides on the claims, all or nothing. OK: `done` is called once, later, from the loop and
  // never from inside of this; at the latest when `deadline` has passed, by SteadyNow()
  // (base/steady_now.h). Until then `group`, its claims, their keys and limits stay where they are.
  // Not OK, as the same codes: nothing was asked, `done` is not called.
  //   Unavailable        there is no store to ask, or it refuses. Nothing was charged, except where
  //                      the connection was lost with the answer
  //   DeadlineExceeded   no answer in time; what was charged stays so, but slots come back
  //   ResourceExhausted  too many wait already; nothing was charged
  //   DataLoss           a state or an answer that can't be read; nothing was charged
  //   Internal           the store and the algorithms did not agree; what was charged stays so
  //   Cancelled          the store is being closed
  [[nodiscard]] virtual absl::Status Apply(RemoteGroup& group, Time deadline, Done done) = 0;

  // Gives back `units` (at most claim.receipt.units; of slots all come back) of what an Apply()
  // took, soon, and tries again while the store is gone, as long as the receipt is worth something.
  // The claim may go at once. What can't be given back in the end stays charged. A receipt is good
  // for one undo; that of a lease for as many as wanted, together of at most its units: each says
  // what of it will not be spent. The latest may come after the lease's end; the later, the less
  // returns.
  virtual void Undo(const RemoteClaim& claim, std::uint64_t units) = 0;

  // Concurrency: the slot's time to live starts again, soon. One that is over by now, or that the
  // store has lost, is taken again, whatever the room: its holder runs all the same. Not tried
  // twice: who holds a slot renews it several times in its life.
  virtual void Renew(const RemoteClaim& claim) = 0;
};

}  // namespace sluice
