#include "apps/sluice/demo.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_replace.h"
#include "apps/sluice/demo_rules.h"

namespace sluice::app {

absl::StatusOr<std::unique_ptr<Demo>> Demo::Start() {
  std::unique_ptr<Demo> demo(new Demo);
  demo->loops_.Start();
  auto orders = orders_api::OrdersApi::Start(demo->loops_, {.host = "127.0.0.1", .port = 0});
  if (!orders.ok()) return orders.status();
  demo->orders_ = *std::move(orders);
  return demo;
}

Demo::~Demo() {
  if (orders_ != nullptr) orders_->Drain(std::chrono::seconds{1});
  loops_.Stop();
}

std::string Demo::config() const {
  return absl::StrReplaceAll(
      kDemoRules, {{"http://127.0.0.1:9000", "http://" + net::ToString(orders_->endpoint())}});
}

std::string Demo::Welcome() const {
  return R"(
Sluice runs its demo: a gateway in front of a small Orders API.

  gateway   http://127.0.0.1:8080    (rules: docs/examples/demo.yaml)
  admin     http://127.0.0.1:9464    /metrics  /v1/rules  /readyz

Five requests at once pass, the sixth gets a 429 that says when to come back:

  for i in 1 2 3 4 5 6; do
    curl -s -o /dev/null -w '%{http_code}\n' -H 'X-API-Key: ann' http://127.0.0.1:8080/v1/orders
  done
  curl -i -H 'X-API-Key: ann' http://127.0.0.1:8080/v1/orders

Bob has a counter of his own; who has no key gets a 401; two exports run at a time:

  curl -i -H 'X-API-Key: bob' http://127.0.0.1:8080/v1/orders
  curl -i http://127.0.0.1:8080/v1/orders
  for i in 1 2 3; do
    curl -s -o /dev/null -w '%{http_code}\n' -H 'X-API-Key: eve' \
      'http://127.0.0.1:8080/v1/exports?delay=2s' &
  done; wait

Ctrl-C ends it.

)";
}

}  // namespace sluice::app
