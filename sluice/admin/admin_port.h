// The operator's port.
//
//   GET /healthz    200 while the process lives
//   GET /readyz     200 once the doors are open, 503 as soon as it drains; whether the shared store
//                   decides or failure modes do, which is no reason to send nobody any more
//   GET /metrics    Prometheus text format
//   GET /v1/rules   the rules in force, in order, as JSON
//
// Runs on an event loop of its own, so that it answers while the doors are busy. It has no
// password: let it listen on the loopback address.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "sluice/net/address.h"
#include "sluice/net/http_service.h"
#include "sluice/rule/rule_set.h"

namespace sluice::admin {

class AdminPort {
 public:
  // What the port shows. All are called on its own thread, so they must be safe beside the others.
  struct Views {
    std::function<bool()> ready;
    std::function<void(std::string& out)> write_metrics;  // appends
    std::function<std::shared_ptr<const RuleSet>()> rules;
    std::function<std::string()> shared_store = nullptr;  // its state as JSON; null: there is none
  };

  static absl::StatusOr<std::unique_ptr<AdminPort>> Start(const net::HostPort& where, Views views);
  ~AdminPort();
  AdminPort(const AdminPort&) = delete;
  AdminPort& operator=(const AdminPort&) = delete;

  [[nodiscard]] const net::tcp::endpoint& endpoint() const { return server_->endpoint(); }

 private:
  AdminPort() = default;

  net::EventLoops loops_{1};
  std::unique_ptr<net::TcpServer> server_;
};

// What the port answers to a request. Apart from the port for its tests.
[[nodiscard]] net::Answer AnswerAdmin(const AdminPort::Views& views, std::string_view method,
                                      std::string_view path);

}  // namespace sluice::admin
