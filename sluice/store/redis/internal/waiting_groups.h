// The groups of one store that somebody waits for, wherever they are: each ends once, at its
// deadline at the latest.
//
//   Free ──Start──> held, by whoever sends it ──End──> told, and free again
//                        `──its deadline──> OnLate() of its holder
//
// Cost: a group takes two steps in a heap, and no allocation once the buffers have grown.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "sluice/base/placed_heap.h"
#include "sluice/base/time.h"
#include "sluice/net/event_loops.h"
#include "sluice/store/redis/internal/asked_group.h"
#include "sluice/store/redis/internal/loop_hooks.h"
#include "sluice/store/redis/key_name.h"
#include "sluice/store/redis/redis_counters.h"
#include "sluice/store/remote_store.h"

namespace sluice::redis {

class WaitingGroups {
 public:
  WaitingGroups(net::EventLoop& loop, const KeyOptions& keys, RedisCounters& counters,
                std::size_t most);
  WaitingGroups(const WaitingGroups&) = delete;
  WaitingGroups& operator=(const WaitingGroups&) = delete;

  // One that nobody waits for, the same until Start(). Null: there are too many.
  [[nodiscard]] AskedGroup* Free();
  // What RemoteStore::Apply() says when it takes none.
  const absl::Status& Refuse(const absl::Status& why);
  [[nodiscard]] const absl::Status& full() const { return full_; }
  [[nodiscard]] const absl::Status& late() const { return late_; }

  // In the script's words. Before or after Start(), once.
  void Name(AskedGroup& free, RemoteGroup& group) { free.Take(keys_, slots_, group); }
  // Somebody waits from now on. It has a holder.
  void Start(AskedGroup& free, Time deadline, RemoteStore::Done done);

  // Tells whoever waits, if anybody does still, and makes it free.
  void End(AskedGroup& asked, const absl::Status& status, Time now);
  // Tells whoever waits that it is late. It stays where it is, with its limits, until End().
  void EndButKeep(AskedGroup& asked, Time now);

  // The timer may be late; this ends those whose deadline has passed.
  void EndLate(Time now);

 private:
  [[nodiscard]] RemoteStore::Done StopWaiting(AskedGroup& asked, Time now);

  const KeyOptions& keys_;
  RedisCounters& counters_;
  const std::size_t most_;
  const absl::Status full_;  // ready made, as they are given when there is much to do
  const absl::Status late_;

  SlotIds slots_;
  PlacedHeap<AskedGroup, &AskedGroup::deadline, &AskedGroup::place> deadlines_;
  Wake wake_;
  std::vector<std::unique_ptr<AskedGroup>> all_;
  std::vector<AskedGroup*> free_;
};

}  // namespace sluice::redis
