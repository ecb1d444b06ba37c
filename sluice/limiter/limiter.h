// The engine. The only way into deciding, for every door and for embedders.
//
//   request ──> RuleSet: which rules, which keys ──> one claim for each ──> Store::Apply
//           <── Outcome: folded from all claims <──
//
//   MemoryStore store = ...;                          // shared by all threads
//   Limiter limiter({.store = store, ...}, rules);    // one for each thread
//   Outcome outcome;                                  // reused from call to call
//   limiter.Check(request, outcome);
//   if (!outcome.allowed()) ...                       // 429, outcome.retry_after
//   limiter.Finish(outcome);                          // when the request is over: slots come back
//
// Where rules count in a store that several nodes share (remote_store.h) the answer comes later:
//
//   Limiter limiter({..., .remote = &redis}, rules);  // one for each event loop
//   if (!limiter.Check(request, outcome, done)) ...   // done() is called when the outcome is there
//
// Guarantee: what the algorithms' headers promise for each key holds whatever the number of threads
// and limiters on one store; all binding claims of a request are charged or none (with a remote
// store: remote_checks.h).
//
// Cost: one reading of the clock a call (a batch counts as one); no lock, no allocation once the
// buffers have grown to their size. Batches of up to 32 hide the memory latency of the keys, unless
// a rule has block_for (blocks.h).
//
// Thread-safety: a Limiter belongs to one thread (an event loop); any number may share a store.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <span>

#include "sluice/base/clock.h"
#include "sluice/base/hash.h"
#include "sluice/limiter/active_rules.h"
#include "sluice/limiter/blocks.h"
#include "sluice/limiter/denial_memory.h"
#include "sluice/limiter/observer.h"
#include "sluice/limiter/outcome.h"
#include "sluice/limiter/remote_checks.h"
#include "sluice/rule/request.h"
#include "sluice/store/store.h"

namespace sluice {

class Limiter {
 public:
  struct Parts {
    Store& store;
    const HashKey& hash_key;  // the one of the store's keys (MemoryStore::hash_key)
    const Clock& clock;
    Observer* observer = nullptr;  // may be null
    // Of the same event loop. Null: rules made for one (ActiveRules::Make) answer by their failure
    // modes.
    RemoteStore* remote = nullptr;
    Duration remote_deadline = std::chrono::milliseconds{5};  // for its answers
    DenialMemory* denials = nullptr;  // of the node; null: none is remembered
    Leases* leases = nullptr;         // of the same event loop, in front of `remote`; null: none
  };

  // All parts outlive the limiter.
  Limiter(Parts parts, const std::shared_ptr<const ActiveRules>& rules);
  Limiter(const Limiter&) = delete;
  Limiter& operator=(const Limiter&) = delete;

  // From the next call on, requests meet these rules. Outcomes of earlier calls keep theirs.
  void Replace(const std::shared_ptr<const ActiveRules>& rules);
  [[nodiscard]] const std::shared_ptr<const ActiveRules>& rules() const { return rules_; }

  // Decides on one request, or on several at the same instant, each by itself and in order. The
  // spans have the same size; any size. For rules that all count in memory; others answer by their
  // failure modes.
  void Check(const LimitRequest& request, Outcome& outcome) {
    Check(std::span(&request, 1), std::span(&outcome, 1));
  }
  void Check(std::span<const LimitRequest> requests, std::span<Outcome> outcomes);
  // The same, wherever the rules count. True: the outcome is complete. False: it will be when
  // `done` is called, once, on this thread and never from inside of this, at most remote_deadline
  // later (twice that where a block begins). Until then what the request refers to and the outcome
  // stay where they are. Allocates nothing once the outcome's room has grown.
  [[nodiscard]] bool Check(const LimitRequest& request, Outcome& outcome,
                           absl::AnyInvocable<void()> done);

  // The request is over: concurrency slots come back, all else stays charged. Calling it twice, or
  // for an outcome that was denied, does nothing.
  void Finish(Outcome& outcome);

  // The request did not take place: all that it charged and that is still owed comes back.
  void Undo(Outcome& outcome);

  // The request is still running: its concurrency slots' time to live starts again. False when one
  // of them is over, as far as is known at once: not of those in a remote store.
  bool Renew(const Outcome& outcome);

 private:
  // Whether the request is refused before any counter is asked.
  bool Prepare(const LimitRequest& request, Outcome& outcome);
  void AddRemoteClaims(const LimitRequest& request, Outcome& outcome) const;
  void AnswerWithoutRemote(std::span<const LimitRequest> requests, std::span<Outcome> outcomes);
  void GiveBack(const Outcome& outcome, Claim& claim, Now now);
  void HashKeys(std::span<Outcome> outcomes);
  // Asks the store for what groups_ claims (one by one where rules block), and folds the outcomes.
  void Decide(std::span<const LimitRequest> requests, std::span<Outcome> outcomes, Now now);

  Parts parts_;
  // Counted by a block of this limiter's own, so that outcomes on other threads do not fight for
  // one reference count.
  std::shared_ptr<const ActiveRules> rules_;
  RuleSet::Scratch scratch_;
  std::array<ClaimGroup, Store::kMaxBatch> groups_;
  Blocks blocks_;
  RemoteChecks remote_checks_;
};

}  // namespace sluice
