// What is sent to Redis for up to 32 requests, and what its answer means.
//
//   ScriptCall call;                               // one for each connection, reused
//   call.AppendDecide(sha, groups, now, &bytes);   // EVALSHA ... as bytes
//   ... send, receive ...
//   status = call.ReadDecide(reply, groups, now);  // decisions, receipts; which to send again
//
// The script (script/*.lua, ScriptSource()) decides and keeps states; the fields of each decision
// are computed here, by the functions that decide in memory, from the state before and the server's
// time. Where they and the script do not agree, that request fails (kFailed, Internal) and is
// counted; it is never answered by either.
//
// Each group stands for itself: all or nothing, and what is wrong with one (a key of another type,
// a damaged state) fails that one alone.
//
// To be sent again are groups
//   - with a state under other numbers. It comes back, is converted here (internal/convert.h), and
//     goes along the next time; the script takes it if the state is still the one that was
//     converted. It is kept only together with a charge: a denied request writes nothing;
//   - with a calendar whose edges, sent for what we believe the server's time to be, do not
//   surround
//     the time that it has. Our belief is better after each reply.
//
// Not thread-safe. Allocates where a state was converted, and until its buffers have grown.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "sluice/base/time.h"
#include "sluice/net/redis_reply.h"
#include "sluice/store/redis/script_limit.h"
#include "sluice/store/store.h"

namespace sluice::redis {

// The script's text, for SCRIPT LOAD, whose reply is its SHA1.
[[nodiscard]] std::string_view ScriptSource();

struct ScriptClaim {
  std::string_view key;  // as AppendKeyName() makes it
  const ScriptLimit* limit = nullptr;
  ClaimKind kind = ClaimKind::kBinding;
  bool charge_denied = false;    // as Claim::charge_denied
  std::uint64_t cost = 1;        // 0: only look
  std::uint32_t phase_bits = 0;  // drawn from the key, by every node alike: AppendKeyName()
  std::uint64_t slot = 0;        // concurrency: an id that no other claim ever has; random
  // As RemoteClaim::lease. Only of a claim that is alone in its group, binding, does not charge
  // denials and is under a limit of which CanLease() says so.
  Duration lease{0};

  Decision decision;
  Receipt receipt;
  Duration good_for{0};  // as RemoteClaim::good_for
  bool damaged = false;  // the state was impossible and counted as absent

  // Between two turns: what was there, and what it is under `limit`.
  bool converts = false;
  std::string expected;
  std::string converted;
};

struct ScriptGroup {
  enum class State : std::uint8_t {
    kDone,
    kAgain,   // nothing was charged: to be sent again, as it is
    kFailed,  // `status`; no claim has a decision or a receipt
  };
  std::span<ScriptClaim> claims;  // of one key all under one limit
  bool allowed = false;           // every binding and look claim had room
  State state = State::kDone;
  // Unavailable: the server refused (READONLY, OOM, ...), nothing was charged. DataLoss: a state or
  // an answer that cannot be read. Internal: see above; what was charged stays charged.
  absl::Status status;
};

// A charge to be given back. `receipt` of a claim on `key` under `limit`.
struct ScriptUndo {
  std::string_view key;
  const ScriptLimit* limit = nullptr;
  std::uint32_t phase_bits = 0;
  Receipt receipt;
  std::uint64_t units = 0;  // at most receipt.units; of slots all come back
  // A key in the same slot (AppendMarkName), no two undos' the same. While it is there the undo is
  // known to be done, and is not done again. Empty: none.
  std::string_view mark;
  Duration mark_life{0};

  bool given_back = false;  // now or before; false: it was worth nothing any more
  absl::Status status;
};

// A slot to be held on. One that is over or that the server has lost is taken again, whatever the
// room: its holder runs all the same.
struct ScriptRenewal {
  std::string_view key;
  const ScriptLimit* limit = nullptr;
  Receipt receipt;

  bool held = false;  // false: it was not, and was taken again
  absl::Status status;
};

class ScriptCall {
 public:
  static constexpr std::size_t kMostGroups = 32;
  // A group that is to be sent again after so many times may be given up: others change its state
  // each time.
  static constexpr int kMostTurns = 4;

  // Appends the command. `sha` as SCRIPT LOAD gave it. All limits and keys outlive the call. Needs
  // at least one claim in each group.
  void AppendDecide(std::string_view sha, std::span<const ScriptGroup> groups, Now now,
                    std::string* out);
  // `groups` as they were sent. Errors, which concern all of them:
  //   FailedPrecondition  NOSCRIPT: load the script and send again; nothing was done
  //   Unavailable         the server refused, with its words; nothing was done
  //   DataLoss            this is no answer of our script
  [[nodiscard]] absl::Status ReadDecide(const net::RedisValue& reply, std::span<ScriptGroup> groups,
                                        Now now);

  void AppendUndo(std::string_view sha, std::span<const ScriptUndo> undos, Now now,
                  std::string* out);
  [[nodiscard]] absl::Status ReadUndo(const net::RedisValue& reply, std::span<ScriptUndo> undos,
                                      Now now);
  void AppendRenew(std::string_view sha, std::span<const ScriptRenewal> renewals, std::string* out);
  [[nodiscard]] absl::Status ReadRenew(const net::RedisValue& reply,
                                       std::span<ScriptRenewal> renewals, Now now);

  // How often the script and the algorithms did not agree.
  [[nodiscard]] std::uint64_t disagreements() const { return disagreements_; }
  // The server's clock less ours, as of the last reply; 0 before the first.
  [[nodiscard]] Duration clock_offset() const { return clock_offset_; }

 private:
  class Writer;

  [[nodiscard]] std::size_t NumberOf(const ScriptLimit* limit);
  [[nodiscard]] std::size_t ShapeOf(const ScriptClaim& claim);
  void WriteShapes(Writer& writer);
  void WriteSizes(std::span<const ScriptGroup> groups, std::size_t claims, Writer& writer);
  [[nodiscard]] absl::Status ReadHead(const net::RedisValue& reply, std::size_t answers, Now now);
  void ReadGroup(const net::RedisValue& answer, ScriptGroup& group);
  [[nodiscard]] absl::Status ReadClaims(const net::RedisValue& answer, ScriptGroup& group);
  [[nodiscard]] absl::Status ReadClaim(std::string_view told, ScriptClaim& claim) const;
  [[nodiscard]] absl::Status ReadOthers(const net::RedisValue& answer, ScriptGroup& group);

  // Of the command that is being written: each limit, and each kind of claim, once.
  std::vector<const ScriptLimit*> limits_;
  std::vector<const ScriptClaim*> shapes_;
  std::string sizes_;
  std::uint64_t disagreements_ = 0;
  Duration clock_offset_{0};
  std::int64_t server_us_ = 0;  // of the reply that is being read
};

}  // namespace sluice::redis
