// Accepts connections on every loop and knows which are open, so that a server can end in order.
//
//   accept -> factory(loop, socket) -> Session::Run() ... -> gone
//                                         ^ Drain(): finish what is in flight, take nothing new
//                                         ^ Abort(): end now
//
// A doorkeeper may refuse a connection before anything is made of it.
//
// A loop at its bound of connections stops accepting until one ends; meanwhile the kernel's queue
// holds the others.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/base/time.h"
#include "sluice/net/address.h"
#include "sluice/net/client_connections.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/listener.h"
#include "sluice/net/stream.h"
#include "sluice/net/task.h"

namespace sluice::net {

// One connection of a server. All calls come on its loop's thread.
class Session {
 public:
  virtual ~Session() = default;

  // The whole life of the connection.
  virtual Task<void> Run() = 0;
  // The server ends: answer what has been asked, take no more. Called at most once.
  virtual void Drain() = 0;
  // Let Run() end soon, whatever it waits for.
  virtual void Abort() = 0;
};

class TcpServer {
 public:
  using Factory = std::function<std::unique_ptr<Session>(EventLoop&, Socket)>;

  // Asked about each new connection on its loop's thread. Nothing: it is closed at once.
  using Doorkeeper =
      std::function<std::optional<ClientConnections::Pass>(EventLoop&, const tcp::endpoint& peer)>;

  struct Options {
    std::size_t max_connections = 10'000;  // of all loops together; each has its even share
    Doorkeeper doorkeeper = nullptr;       // null: all are let in
  };

  // Listens on `where` and accepts from then on. `loops` outlives the server. From any thread that
  // is not a loop's; the loops may run already.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<TcpServer>> Start(EventLoops& loops,
                                                                        const HostPort& where,
                                                                        const Options& options,
                                                                        Factory factory);
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;
  ~TcpServer();  // as Drain(0)

  [[nodiscard]] const tcp::endpoint& endpoint() const { return endpoint_; }
  // Open now. From any thread, also while Drain() runs.
  [[nodiscard]] std::size_t connections() const { return open_->load(std::memory_order_relaxed); }

  // That were closed by the doorkeeper's word, so far. From any thread.
  [[nodiscard]] std::uint64_t refused() const { return refused_->load(std::memory_order_relaxed); }

  // Stops accepting, lets sessions finish for at most `limit`, then aborts them, and returns when
  // none is left. Not from a loop's thread; the loops must run, or never have run.
  void Drain(Duration limit);

 private:
  class PerLoop;

  TcpServer() = default;

  EventLoops* loops_ = nullptr;
  tcp::endpoint endpoint_;
  std::vector<std::shared_ptr<PerLoop>> per_loop_;
  // Of all loops; apart from them, since they go before their server does.
  std::shared_ptr<std::atomic<std::size_t>> open_ = std::make_shared<std::atomic<std::size_t>>(0);
  std::shared_ptr<std::atomic<std::uint64_t>> refused_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace sluice::net
