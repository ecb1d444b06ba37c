// One open connection to a Redis server, from the socket to the end of the greeting. What is sent
// then, and who waits for it, its owner knows.
//
//   auto link = std::make_shared<RedisLink>(loop, options, RedisTarget{...});
//   absl::Status open = co_await RedisLink::Open(link);
//   ... link->stream(), link->reader()
//
// Close() ends all that waits on it, soon. For one loop; whoever waits on it owns it as well.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/time.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/internal/lookup.h"
#include "sluice/net/read_buffer.h"
#include "sluice/net/redis_connection.h"
#include "sluice/net/redis_reply.h"
#include "sluice/net/stream.h"
#include "sluice/net/task.h"
#include "sluice/net/tls_peer.h"

namespace sluice::net::internal {

// Where it goes, unless the options have a path; and until when it has to be ready.
struct RedisTarget {
  HostPort address;
  std::shared_ptr<TlsPeer> peer;  // null: no TLS
  Time timeout;
};

class RedisLink {
 public:
  // `options` outlives it.
  RedisLink(EventLoop& loop, const RedisConnectionOptions& options, RedisTarget target);
  RedisLink(const RedisLink&) = delete;
  RedisLink& operator=(const RedisLink&) = delete;

  // Connects and greets, within the timeout. Once.
  static Task<absl::Status> Open(std::shared_ptr<RedisLink> self);
  // A part of it: to the first of them that takes us.
  Task<absl::Status> ConnectTo(std::vector<tcp::endpoint> endpoints);

  // Waits for more and gives it to reader(). Not OK: nothing more comes.
  Task<absl::Status> Read();
  // False: the connection is broken.
  Task<bool> Write(std::string_view bytes) { return stream_->Write(bytes); }
  [[nodiscard]] RedisReplyReader& reader() { return reader_; }

  void Close();

 private:
  Task<absl::Status> ConnectToName();
  absl::Status ConnectToPath();
  Task<absl::Status> Greet();
  [[nodiscard]] absl::Status Ended() const;
  // The part of what is left until the timeout, when it has to do for `parts`.
  [[nodiscard]] Duration Left(std::size_t parts = 1) const;

  EventLoop& loop_;
  const RedisConnectionOptions& options_;
  const RedisTarget target_;
  Alarm<RedisLink, &RedisLink::Close> alarm_;  // while a name is looked up
  Lookup lookup_;
  std::optional<Stream> stream_;
  ReadBuffer buffer_;
  RedisReplyReader reader_;
  bool closed_ = false;
};

}  // namespace sluice::net::internal
