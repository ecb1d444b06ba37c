// Where the state of every key lives, as the engine sees it.
//
// A request that several rules match brings one claim for each. Apply() decides on all of them and
// charges every binding claim or none, whatever else runs at the same time:
//
//   claims of one request:  [binding][binding][shadow]
//        1. decide on all      room?    room?    room?
//        2. charge all         only if every binding claim has room (a shadow one: if it has)
//        3. another request was faster on one of them: give the others back by receipt; denied
//
// In step 3 another request may see a charge that is given back a moment later, and be denied for
// it; nobody is ever admitted by it.
//
// A store knows algorithms only through sluice/algorithm: Decide, Charge, Undo, the debt, and the
// size of a state.
//
// Thread-safety: every function may be called from any thread at any time.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "sluice/algorithm/limit.h"
#include "sluice/base/hash.h"
#include "sluice/base/time.h"

namespace sluice {

// A limit as this store knows it (Store::Register).
using LimitId = std::uint16_t;
// Of no limit: that of a claim whose counter lies in a remote store (remote_store.h).
inline constexpr LimitId kRemoteLimitId = 0xffff;

enum class ClaimKind : std::uint8_t {
  kBinding,  // no room: the request is denied
  kShadow,   // decided and recorded; charged if it and every binding claim have room; never denies
  kSoft,     // always charged, the debt capped at one burst beyond the capacity; never denies
  kLook,     // decided with its cost, as if binding for the request's verdict, never charged
  kShadowLook,  // decided with its cost and recorded: neither charged nor binding
};

// One limit on one key, for one request. The first part is the caller's, the second the store's.
struct Claim {
  Hash128 key;
  const Limit* limit = nullptr;  // must be the one registered as limit_id; outlives the call
  LimitId limit_id = 0;
  ClaimKind kind = ClaimKind::kBinding;
  // Charged whoever denied the request, also beyond the limit (as kSoft is). Not for the looks.
  bool charge_denied = false;
  std::uint64_t cost = 1;  // 0: only look

  Decision decision;  // as after the call: remaining and reset_after say what is left then
  Receipt receipt;    // units 0: nothing charged
};

// The claims of one request. All or nothing.
struct ClaimGroup {
  std::span<Claim> claims;
  bool allowed = false;  // set by the store: every binding (and look) claim had room
};

class Store {
 public:
  virtual ~Store() = default;

  // Makes a limit known and gives the id that claims carry; the same numbers give the same id. Not
  // for the hot path. ResourceExhausted: too many different limits are alive (thousands).
  // An id stays good until Release() was called as often as Register().
  virtual absl::StatusOr<LimitId> Register(const Limit& limit) = 0;
  virtual void Release(LimitId id, Now now) = 0;

  // A hint: a claim on `key` comes with the next Apply(), alone. Its memory is fetched meanwhile;
  // for several groups Apply() does so itself.
  virtual void Prefetch(const Hash128& /*key*/) const noexcept {}

  // Decides on and charges each group by itself, in order; groups are given together only so that
  // memory can be fetched ahead. Answers at once, allocates nothing. At most kMaxBatch groups.
  static constexpr std::size_t kMaxBatch = 32;
  virtual void Apply(std::span<ClaimGroup> groups, Now now) noexcept = 0;

  // Gives back `units` (<= claim.receipt.units) of what a claim took; the receipt is used up by it
  // (units 0 afterwards), so that a second call does nothing. For concurrency: releases the slot.
  virtual void Undo(Claim& claim, std::uint64_t units, Now now) noexcept = 0;

  // Concurrency: the slot's time to live starts again. False: the slot is over, or was released.
  virtual bool Renew(const Claim& claim, Now now) noexcept = 0;
};

}  // namespace sluice
