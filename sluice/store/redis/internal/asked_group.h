// A group that somebody waits for, in the script's words. Kept and used again: what it holds grows
// and is not given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/time.h"
#include "sluice/store/redis/internal/breaker.h"
#include "sluice/store/redis/key_name.h"
#include "sluice/store/redis/script_call.h"
#include "sluice/store/remote_store.h"

namespace sluice::redis {

// Ids of slots, none of which is ever drawn again (64 random bits), and never 0.
class SlotIds {
 public:
  std::uint64_t Draw();

 private:
  std::vector<std::uint64_t> drawn_;  // some at once: randomness is a system call
};

[[nodiscard]] KeyKind KindOf(const Limit& limit, bool block);

struct AskedGroup;

// Whoever has a group until it ends.
class GroupHolder {
 public:
  virtual ~GroupHolder() = default;
  // Its deadline has passed: nobody may wait for it when this has come back.
  virtual void OnLate(AskedGroup& asked, Time now) = 0;
};

struct AskedGroup {
  RemoteGroup* group = nullptr;  // null: has ended, though its call may still be on its way
  GroupHolder* holder = nullptr;
  RemoteStore::Done done;
  Breaker::Ticket ticket = 0;
  Time since;  // when it was asked
  Time deadline;
  std::size_t place = 0;   // among all deadlines
  int turns = 0;           // how often it was sent
  bool sent_here = false;  // to the server that it was given to last
  bool on_its_way = false;
  // In a cluster: the slot of its keys, and where it was sent on to (internal/redirects.h).
  std::uint16_t slot = 0;
  int redirects = 0;
  int hops = 0;         // those of them that led to a server
  bool alone = false;   // in a call of its own
  bool asking = false;  // of a server that the slot is on its way to
  Time pauses_until;    // while it does

  std::vector<ScriptClaim> claims;
  std::string names;  // of their keys, one after another
  // Of one that has ended: its limits, which its answer is read with.
  std::vector<std::shared_ptr<const RemoteLimit>> kept;

  void Take(const KeyOptions& keys, SlotIds& slots, RemoteGroup& asked);
  // Decisions and receipts, to whoever asked.
  void Tell(const ScriptGroup& answered) const;
  // Nobody waits any more, and the limits may go.
  void KeepLimits();

 private:
  std::vector<std::size_t> ends_;  // of the names
};

}  // namespace sluice::redis
