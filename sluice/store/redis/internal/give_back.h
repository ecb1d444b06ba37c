// What is to be given back, and slots to be held on, until the server knows.
//
//   Undo, Release ──> waiting ──Send()──> on its way, up to 32 in a call ──> done
//                        ^                        │
//                        `── resting 0.1 s .. 1 s  ┘  refused; and slots whose fate nobody knows
//
// While the store is gone all of it waits: as long as it is worth something, and up to a bound. The
// charges of counters may fill half of the bound, so that there is room for slots, which are
// dearer: what is dropped of a counter is paid back with time, a slot only at its end.
//
// To give back twice is harmless for a slot, which goes by its id. For a counter it would give back
// what others spent. So once nobody knows whether it was done it is tried again only where undos
// are marked on the server (ScriptUndo::mark), and while the mark is sure to be there; what is lost
// without stays charged:
//
//   first sent ──(answer lost)──> tried again, for a minute ──> given up
//       mark:  |-- from whenever it was done, for that minute and 20 s --|
//
// One that was answered the first time is never sent again: its mark is deleted, so that marks do
// not pile up where much is undone.
//
// In a cluster a call holds keys of one slot. What a server sends elsewhere goes on from there, and
// what waits for one that has lost its slots goes to those that have them now (redirects.h).
//
// A slot may also be released that nobody knows to be taken: the connection was lost with the
// answer. The server may still read from it what was sent there, later than what comes by the next
// one; so a slot that is not found is looked for once more, a second later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/time.h"
#include "sluice/net/deadlines.h"
#include "sluice/net/event_loops.h"
#include "sluice/store/redis/internal/store_parts.h"
#include "sluice/store/redis/redis_slots.h"
#include "sluice/store/redis/script_call.h"
#include "sluice/store/remote_store.h"

namespace sluice::redis {

class GiveBack {
 public:
  GiveBack(net::EventLoop& loop, const StoreParts& parts, std::size_t max_waiting, bool marks);
  GiveBack(const GiveBack&) = delete;
  GiveBack& operator=(const GiveBack&) = delete;
  ~GiveBack();

  void Undo(const RemoteClaim& claim, std::uint64_t units);
  // A slot of that id, if there is one. `key` is its name. `lost`: with the connection.
  void Release(std::string_view key, const RemoteLimit& limit, std::uint64_t slot,
               std::uint64_t units, bool lost);
  void Renew(const RemoteClaim& claim);

  // All that waits, as far as the link is usable and not too much is on its way.
  void Send();

  // In a cluster. What waits here for keys that the server has no more,
  // or never had, goes to those that have them.
  void HandOver();

 private:
  struct Owed {
    std::string key;
    std::shared_ptr<const RemoteLimit> limit;
    std::uint32_t phase_bits = 0;
    Receipt receipt;
    std::uint64_t units = 0;
    int tries = 0;
    Time until = Time::max();  // when it is worth nothing any more; known from its first rest on
    int rests = 0;             // so many rounds more
    bool look_again = false;   // where it is not found
    std::string mark;          // empty: none
    Time sent;                 // for the first time, or after it was known not to be done
    bool unknown = false;      // whether it was done
    // In a cluster, as AskedGroup has them.
    std::uint16_t slot = 0;
    int hops = 0;
    bool alone = false;
    bool asking = false;
  };
  struct Call {
    std::vector<Owed*> owed;
    std::vector<ScriptUndo> undos;
    std::vector<ScriptRenewal> renewals;
  };

  Owed* Take(const RemoteLimit& limit);
  Owed* TakeFor(const RemoteClaim& claim);
  Call& NewCall(std::vector<Owed*>* from);
  [[nodiscard]] bool FitInCall(const Owed& first, const Owed& next) const;
  [[nodiscard]] std::size_t most_calls() const;
  bool SendUndos(Time now);
  bool SendRenewals(Time now);
  void DeleteMarks(const Call& call);
  void OnUndone(Call& call, const absl::StatusOr<net::RedisReply>& reply);
  void OnRenewed(Call& call, const absl::StatusOr<net::RedisReply>& reply);
  void Settle(Owed& owed, const ScriptUndo& answered);
  bool FollowAll(const Call& call, const net::RedisReply& reply, bool renewing);
  void Follow(Owed& owed, const Redirect& to, bool renewing);
  void Adopt(const Owed& owed, bool renewing);
  void NobodyKnows(Owed& owed);
  [[nodiscard]] static Time WorthUntil(const Owed& owed, Time now);
  void Rest(Owed& owed, int rounds);
  void Retry(Owed& owed);
  void OnRound();
  void MakeRoom();
  void DropWorthless(Time now);
  void Expire(Owed& owed);
  void Drop(Owed& owed);
  void Recycle(Owed& owed);
  void Recycle(Call& call);

  const StoreParts parts_;
  const std::size_t max_waiting_;
  const bool marks_;
  const std::uint64_t node_;  // random: half of the marks' ids
  std::uint64_t next_mark_ = 0;

  std::vector<Owed*> waiting_;
  std::vector<Owed*> renewing_;
  std::vector<Owed*> resting_;
  net::Alarm<GiveBack, &GiveBack::OnRound> round_;  // set while something rests
  Time makes_room_at_ = Time::min();
  std::size_t calls_on_their_way_ = 0;
  std::string bytes_;
  std::vector<std::string_view> words_;  // of a command

  std::vector<std::unique_ptr<Owed>> all_owed_;
  std::vector<Owed*> free_owed_;
  std::vector<std::unique_ptr<Call>> all_calls_;
  std::vector<Call*> free_calls_;
};

}  // namespace sluice::redis
