// The groups that one server is to decide on: those of one turn of the loop leave together.
//
//   Enter ──> waiting ──Send()──> on its way: up to 32 in a call ──reply──> told
//                ^                                 │
//                `──── to be sent again (kAgain, NOSCRIPT) ────'
//
// Each group ends at its own deadline, whatever becomes of its call: that one's deadline is the
// latest of its groups. One that ends while it waits is not sent. One that ends on its way keeps
// its place as long as its call is awaited; its slots are released, by a command behind the one
// that takes them.
//
// In a cluster a call holds groups of one slot, and one that the server sends elsewhere leaves for
// there (redirects.h).
//
// Cost: no allocation once the buffers have grown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sluice/base/time.h"
#include "sluice/store/redis/internal/asked_group.h"
#include "sluice/store/redis/internal/give_back.h"
#include "sluice/store/redis/internal/guard.h"
#include "sluice/store/redis/internal/store_parts.h"
#include "sluice/store/redis/internal/waiting_groups.h"
#include "sluice/store/redis/redis_slots.h"
#include "sluice/store/redis/script_call.h"

namespace sluice::redis {

class CallQueue final : public GroupHolder {
 public:
  CallQueue(const StoreParts& parts, Guard& guard, GiveBack& give_back);
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Holds it from now on, to send it at the end of this turn. Not OK, why: the server is not asked.
  absl::Status Enter(AskedGroup& asked);
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

  [[nodiscard]] std::size_t FitsInCall(std::size_t first) const;
  void SendCall(std::size_t first, std::size_t count, Time now);
  void OnReply(Call& call, const absl::StatusOr<net::RedisReply>& reply);
  [[nodiscard]] const absl::Status& WhyOf(const absl::Status& status) const;
  void OnAnswers(Call& call, const net::RedisReply& reply, Time now);
  void Settle(AskedGroup& asked, ScriptGroup& answered, Time now);
  void SendAgain(AskedGroup& asked, Time now);
  void Follow(Call& call, const Redirect& to, Time now);
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
  void OnLate(AskedGroup& asked, Time now) override;

  const StoreParts parts_;
  Guard& guard_;
  GiveBack& give_back_;

  std::vector<AskedGroup*> waiting_;
  std::vector<AskedGroup*> leaving_;  // what was waiting, while it is sent
  std::string bytes_;

  std::vector<std::unique_ptr<Call>> all_calls_;
  std::vector<Call*> free_calls_;
};

}  // namespace sluice::redis
