// A request whose rules count in a remote store, from its local half to its answer.
//
//   claims in memory ── denied ──────────────────────────────────────────────> answer
//         │ charged           (rules that charge denials are asked all the same)
//         v
//   claims in the remote store, one call ── denied ──> local charges come back ──> answer
//         │ charged                │
//         v                        `─ no answer ──> each rule's failure mode ──> answer
//       answer
//
// Guarantee: of all binding claims of a request, wherever they count, all are charged or none,
// except that a charge in memory is there for as long as the remote store takes to answer, and that
// what the remote store charged stays so where its answer was lost. In either case somebody else
// may be denied for it, and nobody is admitted.
//
// Where a rule leases (store/lease/leases.h) and enough is held, the request takes from that,
// before anything else, and puts it back where it is denied. Not for looks.
//
// A denial in memory spares the remote store: its rules are not asked (AnsweredBy::kNobody), unless
// they charge denials.
//
// A denial of the remote store is remembered for at most a second (denial_memory.h): until then the
// same request is denied without a question to any store. Not for concurrency, shadows, looks, nor
// rules that charge denials.
//
// Failure modes (OnStoreFailure), for as long as the store does not answer, request by request:
// a rule that is open passes; one that is closed denies (a shadow one passes); local ones count in
// memory, all or nothing together with those that counted there before.
//
// Blocks (blocks.h) of a rule that counts remotely lie in the remote store, too. They are looked at
// in the same call; one that begins, and the wait of one that is charged while it runs, is a second
// call, which denials alone pay. Where that call gets no answer the denial stands and its block may
// not have begun.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "sluice/base/clock.h"
#include "sluice/limiter/blocks.h"
#include "sluice/limiter/denial_memory.h"
#include "sluice/limiter/observer.h"
#include "sluice/limiter/outcome.h"
#include "sluice/rule/request.h"
#include "sluice/store/lease/leases.h"
#include "sluice/store/remote_store.h"
#include "sluice/store/store.h"

namespace sluice {

// What an outcome keeps of its remote claims, and of the call that is under way.
struct RemotePart {
  struct Counted {
    std::size_t claim;  // of the outcome's
    std::uint32_t limit_index;
    std::ptrdiff_t block;  // of `claims`; -1: its rule has none
  };

  struct Leased {
    std::size_t claim;  // of the outcome's
    std::uint32_t limit_index;
    const LeaseTerms* terms;
    std::uint64_t lease;  // 0: put back
    KeySpan key;          // in `leased_keys`
  };

  std::vector<Leased> leased;
  std::string leased_keys;
  std::string keys;
  // One for each of `counted`, in order; then the blocks of those that have one.
  std::vector<RemoteClaim> claims;
  std::vector<Counted> counted;
  std::vector<RemoteClaim> second;        // of the second call; empty during the first
  std::vector<const Counted*> second_of;  // whose each of those is
  RemoteGroup group;
  LimitRequest request;
  Time sent{};
  absl::AnyInvocable<void()> done;
};

// One for each limiter.
class RemoteChecks {
 public:
  struct Parts {
    Store& local;
    Blocks& blocks;
    const Clock& clock;
    Observer* observer;     // may be null
    RemoteStore* remote;    // null: as one that never answers
    Duration deadline;      // for the remote store, from the start of a check
    DenialMemory* denials;  // may be null
    Leases* leases;         // may be null: nothing is leased
  };
  explicit RemoteChecks(const Parts& parts) : parts_(parts) {}

  // Decides on a request whose outcome has its results, and its claims with their keys, those that
  // count in memory first. `refused`: it is denied whatever its counters say. True: the outcome is
  // complete. False: it will be when `done` is called.
  bool Begin(const LimitRequest& request, Outcome& outcome, const RuleSet::Scratch& keys,
             bool refused, Now now, absl::AnyInvocable<void()> done);

  // The same, without the remote store: those that count there, and of which nothing is leased,
  // answer by their failure modes.
  void AnswerWithout(const LimitRequest& request, Outcome& outcome, const RuleSet::Scratch& keys,
                     bool refused, Now now);

  // Of a claim that counts remotely.
  void Undo(const Outcome& outcome, Claim& claim);
  void Renew(const Outcome& outcome, const Claim& claim);

 private:
  // True: there are claims that count remotely to be decided on.
  bool BeginLocal(const LimitRequest& request, Outcome& outcome, const RuleSet::Scratch& keys,
                  bool refused, Now now);
  void TakeLeased(Outcome& outcome, const RuleSet::Scratch& keys, Now now) const;
  void PutBack(const Outcome& outcome, RemotePart::Leased& leased, Claim& claim) const;
  void PutBackLeased(Outcome& outcome) const;
  bool Recall(Outcome& outcome, Now now) const;
  void RememberDenials(const Outcome& outcome) const;
  bool DecideLocal(const LimitRequest& request, Outcome& outcome, std::size_t begin,
                   std::size_t end, Now now);
  static void DrawUp(Outcome& outcome, const RuleSet::Scratch& keys);
  static void AddBlocks(Outcome& outcome);
  [[nodiscard]] absl::Status Send(Outcome& outcome);
  void OnAnswer(Outcome& outcome, const absl::Status& status);
  void OnSecondAnswer(Outcome& outcome, const absl::Status& status);
  void Take(Outcome& outcome);
  static bool DrawUpSecond(Outcome& outcome);
  static void ApplyBlocks(Outcome& outcome, bool second);
  void Degrade(Outcome& outcome, Now now);
  void TakeBackLocal(Outcome& outcome, std::size_t end, Now now);
  void Report(Outcome& outcome);
  void Finish(Outcome& outcome);

  const Parts parts_;
};

}  // namespace sluice
