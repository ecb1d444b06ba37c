// A small API to stand behind the gateway: in the demo, in examples, and as the upstream of tests.
//
//   GET  /v1/orders              the last orders             POST /v1/orders   a JSON body; 201
//   GET  /v1/exports?delay=2s    an answer that takes its time (at most 60s)
//   GET  /v1/stream?events=5&every=200ms                     server-sent events
//   GET  /v1/echo                WebSocket, sends back every message
//   GET  /v1/headers             the request's own fields, as JSON
//   GET  /count                  how many requests came in, other than for /count and /healthz
//   GET  /healthz                200, for whoever wants to know whether it runs
//
// Everything else is a 404. Orders are kept in memory, the last hundred.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "sluice/net/address.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/http_service.h"
#include "sluice/net/tcp_server.h"

namespace sluice::orders_api {

class OrdersApi {
 public:
  // Listens on `where` with `loops`, which outlive it.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<OrdersApi>> Start(net::EventLoops& loops,
                                                                        const net::HostPort& where);

  [[nodiscard]] const net::tcp::endpoint& endpoint() const { return server_->endpoint(); }
  [[nodiscard]] std::uint64_t requests() const { return requests_.load(); }  // as /count tells
  void Drain(Duration limit) { server_->Drain(limit); }

 private:
  static constexpr std::size_t kKeptOrders = 100;

  net::Task<net::Answer> Handle(net::Exchange& exchange);
  net::Task<net::Answer> Orders(net::Exchange& exchange);
  net::Task<net::Answer> AddOrder(net::Exchange& exchange);

  std::atomic<std::uint64_t> requests_ = 0;
  std::mutex mutex_;
  std::uint64_t last_id_ = 0;       // under mutex_
  std::deque<std::string> orders_;  // under mutex_; each a JSON object
  std::unique_ptr<net::TcpServer> server_;
};

}  // namespace sluice::orders_api
