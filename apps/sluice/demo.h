// The demo: an Orders API of its own, demo rules in front of it, and words on what to try.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "apps/orders_api/orders_api.h"

namespace sluice::app {

class Demo {
 public:
  // Starts the Orders API on a free port of this machine.
  static absl::StatusOr<std::unique_ptr<Demo>> Start();
  ~Demo();
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;

  // docs/examples/demo.yaml with the port of this Orders API in it.
  [[nodiscard]] std::string config() const;
  [[nodiscard]] std::string Welcome() const;

 private:
  Demo() = default;

  net::EventLoops loops_{1};
  std::unique_ptr<orders_api::OrdersApi> orders_;
};

}  // namespace sluice::app
