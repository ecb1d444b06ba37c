// One connection of one event loop to one Redis server, which is opened anew whenever it is lost.
//
//   RedisConnection redis(loop, {.address = {"10.0.0.7", 6379}, .password = secret});
//   absl::Status sent = redis.Send(bytes, now + 5ms, [](absl::StatusOr<RedisReply> reply) { ... });
//
//   connecting ──> ready ──> waiting ──> connecting ─┬─> ready
//                               ^                    │
//                               `────────────────────'  random in 0 .. 10, 20, 40, ... 500 ms
//
// All commands that are given in one turn of the loop leave in one write; replies are matched in
// order. A command is never sent twice, and never after its deadline has passed.
//
// A deadline that passes calls back at once. The late reply is read and dropped, and the connection
// stays. When no reply comes for `max_silence` though some are due, the connection is given up:
// what would come late one day would be worth nothing, and has to be read first.
//
// A connection counts as ready once it has been greeted: AUTH, SELECT, CLIENT SETNAME and PING go
// out together, and an error to one of them is as good as no connection, so that a server that is
// LOADING gets no commands. Why a connection is not ready says error(), with the server's own word
// (NOAUTH, WRONGPASS, NOPERM, LOADING, ...) and never with the password.
//
// Where the server may change, as behind Sentinel (redis_sentinels.h), `find_address` is asked
// before each attempt, once more when the server has been greeted, and every so often while the
// connection is ready: once the server is elsewhere the connection is given up for one that leads
// there. With `primary` none but a primary will do, whatever was said of it.
//
// What a command may end with, as the code of its status; an error that the server answers is a
// reply (RedisReply::error):
//
//   kDeadlineExceeded   no answer in time; whether the command was carried out nobody knows
//   kUnavailable        from Send(): there is no connection, nothing was sent
//                       later: it was lost; whether the command was carried out nobody knows
//   kResourceExhausted  from Send() alone: too many wait, nothing was sent
//   kCancelled          the connection was destroyed
//
// Cost of a command: its bytes are copied once; in steady state nothing is allocated but by the
// reply's parser. A turn of the loop costs a send, and its replies a wait and two receives. One
// timer serves all deadlines: it is set again when it has fired, not for each command.
//
// All of it on the loop's thread (or before the loop runs). Destroy it before the loops are
// stopped. It may be destroyed in any of its callbacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/time.h"
#include "sluice/net/address.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/redis_reply.h"
#include "sluice/net/tls_context.h"

namespace sluice::net {

enum class RedisState : std::uint8_t {
  kConnecting,
  kReady,
  kWaiting,  // for the next attempt
};

// Where a server may be, at least one; or why nobody knows.
using RedisAddresses = absl::StatusOr<std::vector<HostPort>>;

struct RedisConnectionOptions {
  // A name is looked up anew for each attempt, by a thread of its own; all that it stands for is
  // tried in order. The thread of a look-up that hangs is left behind.
  HostPort address;
  std::string unix_socket;  // not empty: a path, in place of the address
  // Not null: in place of both. Calls `found` once within `patience`, on the loop, later. Attempts
  // in a row go to one address each in turn; a connection to any of them stays.
  std::function<void(Duration patience, absl::AnyInvocable<void(RedisAddresses)> found)>
      find_address;
  Duration find_every = std::chrono::milliseconds{500};  // while ready
  bool primary = false;                                  // ROLE must be a primary's
  std::shared_ptr<const TlsClientContext> tls;           // null: no TLS

  std::string user;  // of Redis' ACL; empty: the default one
  std::string password;
  std::uint32_t database = 0;
  std::string client_name;  // for CLIENT LIST, printable and without blanks; empty: none

  RedisReplyReader::Bounds reply;
  std::size_t max_waiting = 1024;  // commands; one whose deadline passed counts until its reply
  std::size_t max_unsent_bytes = std::size_t{1} << 20;

  // Until it is ready, all in all. Half of it at most is for finding the address.
  Duration connect_timeout = std::chrono::seconds{1};
  // To some 100 ms.
  Duration max_silence = std::chrono::seconds{1};
  // The wait before an attempt is random between 0 and this, which doubles up to max_backoff. It
  // begins anew after a connection that held as long as max_backoff.
  Duration min_backoff = std::chrono::milliseconds{10};
  Duration max_backoff = std::chrono::milliseconds{500};
  // Draws the wait, which is at most the argument; null: evenly.
  std::function<Duration(Duration)> jitter;

  // The state has changed. Never from inside the constructor, Send() or the destructor.
  std::function<void(RedisState)> on_state;
};

class RedisConnection {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<RedisReply>)>;

  // Begins to connect.
  RedisConnection(EventLoop& loop, RedisConnectionOptions options);
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;
  // Those that still wait are told so (kCancelled), here and now.
  ~RedisConnection();  // NOLINT(bugprone-exception-escape): no callback throws

  // Sends `command`: the bytes of one or several, to which `replies` are due. `done` gets the last
  // of them and is called once, later. Not OK: nothing was sent, and `done` is not called.
  //
  // Before the connection is ready for the first time, or has failed to become so, commands wait
  // for it as long as their deadline allows. Later, those that come while it is gone are refused.
  [[nodiscard]] absl::Status Send(std::string_view command, Time deadline, Done done,
                                  std::uint32_t replies = 1);

  // Gives up the connection, soon, as if it had been lost: the server at its end is not the one any
  // more that it should be, such as a primary that became a replica (READONLY), while the address
  // may have another by now. `why` is for error(). Nothing happens when it is not ready, or lost
  // before that. From any callback, too.
  void Renew(std::string_view why);

  [[nodiscard]] RedisState state() const;
  // Why it was not ready the last time; OK if it always was.
  [[nodiscard]] const absl::Status& error() const;
  // The server's, of this attempt or the last one; in words.
  [[nodiscard]] const std::string& server() const;
  // Commands that wait, with those whose late reply is still due.
  [[nodiscard]] std::size_t waiting() const;

 private:
  class Core;

  const std::shared_ptr<Core> core_;
};

}  // namespace sluice::net
