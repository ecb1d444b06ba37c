#include "sluice/admin/admin_port.h"

#include <chrono>
#include <utility>

#include "sluice/admin/rules_view.h"

namespace sluice::admin {
namespace {

net::Answer Ready(const AdminPort::Views& views) {
  const bool ready = views.ready();
  net::Answer answer{.status = ready ? 200 : 503};
  answer.body = ready ? R"({"status":"ready")" : R"({"status":"draining")";
  if (views.shared_store != nullptr) {
    answer.body.append(R"(,"shared_store":)").append(views.shared_store());
  }
  answer.body.push_back('}');
  return answer;
}

net::Answer MetricsText(const AdminPort::Views& views) {
  net::Answer answer{.content_type = "text/plain; version=0.0.4; charset=utf-8"};
  views.write_metrics(answer.body);
  return answer;
}

net::Task<net::Answer> Handle(std::shared_ptr<const AdminPort::Views> views,
                              net::Exchange& exchange) {
  co_return AnswerAdmin(*views, exchange.head().method, exchange.path());
}

}  // namespace

net::Answer AnswerAdmin(const AdminPort::Views& views, std::string_view method,
                        std::string_view path) {
  const bool known =
      path == "/healthz" || path == "/readyz" || path == "/metrics" || path == "/v1/rules";
  if (!known) return net::ProblemAnswer(404, "the admin port has no such page");
  if (method != "GET" && method != "HEAD") {
    net::Answer answer = net::ProblemAnswer(405, "this page can only be read");
    answer.more_fields = "Allow: GET, HEAD\r\n";
    return answer;
  }
  if (path == "/healthz") return {.body = R"({"status":"ok"})"};
  if (path == "/readyz") return Ready(views);
  if (path == "/metrics") return MetricsText(views);
  return {.body = RulesJson(*views.rules())};
}

absl::StatusOr<std::unique_ptr<AdminPort>> AdminPort::Start(const net::HostPort& where,
                                                            Views views) {
  std::unique_ptr<AdminPort> port(new AdminPort);
  port->loops_.Start();
  auto shared = std::make_shared<const Views>(std::move(views));
  auto server = net::TcpServer::Start(
      port->loops_, where, {.max_connections = 100},
      net::HttpService([shared](net::Exchange& exchange) { return Handle(shared, exchange); }, {}));
  if (!server.ok()) return server.status();
  port->server_ = *std::move(server);
  return port;
}

AdminPort::~AdminPort() {
  if (server_ != nullptr) server_->Drain(std::chrono::seconds{1});
  loops_.Stop();
}

}  // namespace sluice::admin
