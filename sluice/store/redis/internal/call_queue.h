// The groups that wait for an answer: those of one turn of the loop leave together.
//
//   Add ──> waiting ──Send()──> on its way: up to 32 in a call ──reply──> told
//              ^                                 │
//              `──── to be sent again (kAgain, NOSCRIPT) ────'
//
// Each group ends at its own deadline, whatever becomes of its call: that one's deadline is the
// latest of its groups. One that ends while it waits is not sent. One that ends on its way keeps
// its place as long as its call is awaited; its slots are released, by a command behind the one
// that takes them.
//
// Cost: a group takes two steps in a heap, and no allocation once the buffers have grown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "sluice/base/placed_heap.h"
#include "sluice/base/time.h"
#include "sluice/net/event_loops.h"
#include "sluice/store/redis/internal/asked_group.h"
#include "sluice/store/redis/internal/give_back.h"
#include "sluice/store/redis/internal/guard.h"
#include "sluice/store/redis/internal/loop_hooks.h"
#include "sluice/store/redis/internal/store_parts.h"
#include "sluice/store/redis/script_call.h"
#include "sluice/store/remote_store.h"

namespace sluice::redis {

class CallQueue {
 public:
  CallQueue(net::EventLoop& loop, const StoreParts& parts, std::size_t max_waiting, Guard& guard,
            GiveBack& give_back);
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // As RemoteStore::Apply().
  absl::Status Add(RemoteGroup& group, Time deadline, RemoteStore::Done done);
  // All that waits.
  void Send();
  // Ends those that have not been sent, or are to be sent again.
  void FailWaiting(const absl::Status& why);

 private:
  // Of the groups in it, in order.
  struct Call {
    std::vector<AskedGroup*> asked;
    std::vector<ScriptGroup> groups;
  };

  const absl::Status& Refuse(const absl::Status& why);
  void SendCall(std::size_t first, std::size_t count, Time now);
  void OnReply(Call& call, const absl::StatusOr<net::RedisReply>& reply);
  void OnAnswers(Call& call, const net::RedisReply& reply, Time now);
  void Settle(AskedGroup& asked, ScriptGroup& answered, Time now);
  void SendAgain(AskedGroup& asked, Time now);
  // What the server had to do with a group's end.
  enum class Server : std::uint8_t {
    kSilent,    // nothing: late, lost, or never asked
    kRefused,   // it would not decide
    kAnswered,  // it does decide, whatever became of this one
  };
  void End(AskedGroup& asked, const absl::Status& status, Server server, Time now);
  void Judge(const AskedGroup& asked, const absl::Status& status, Server server);
  // Of one whose charge may have been made, nobody knows.
  void EndUnknown(AskedGroup& asked, const absl::Status& status, Server server, bool lost,
                  Time now);
  void ReleaseSlots(const AskedGroup& asked, bool lost);
  void OnDeadline();
  void Recycle(AskedGroup& asked);

  const StoreParts parts_;
  const std::size_t max_waiting_;
  Guard& guard_;
  GiveBack& give_back_;
  const absl::Status full_;  // ready made, as they are given when there is much to do
  const absl::Status late_;

  SlotIds slots_;
  PlacedHeap<AskedGroup, &AskedGroup::deadline, &AskedGroup::place> deadlines_;
  Wake wake_;
  std::vector<AskedGroup*> waiting_;
  std::vector<AskedGroup*> leaving_;  // what was waiting, while it is sent
  std::string bytes_;

  std::vector<std::unique_ptr<AskedGroup>> all_groups_;
  std::vector<AskedGroup*> free_groups_;
  std::vector<std::unique_ptr<Call>> all_calls_;
  std::vector<Call*> free_calls_;
};

}  // namespace sluice::redis
