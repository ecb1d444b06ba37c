#include "apps/orders_api/orders_api.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "apps/orders_api/websocket_echo.h"

namespace sluice::orders_api {
namespace {

using namespace std::chrono_literals;
using net::Answer;
using net::Exchange;
using net::ProblemAnswer;
using net::Task;

constexpr std::size_t kMaxOrderBytes = std::size_t{64} * 1024;
constexpr Duration kMaxDelay = 60s;
constexpr std::uint32_t kMaxEvents = 1000;

// The value of `name` in `a=b&c=d`; nothing is decoded.
std::optional<std::string_view> Parameter(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name) {
      return pair.substr(equals + 1);
    }
  }
  return std::nullopt;
}

std::optional<std::uint32_t> ParseNumber(std::string_view text) {
  std::uint32_t number = 0;
  if (!absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &number)) return std::nullopt;
  return number;
}

// "2s", "150ms".
std::optional<Duration> ParseDelay(std::string_view text) {
  Duration unit = 1s;
  if (text.ends_with("ms")) {
    unit = 1ms;
    text.remove_suffix(2);
  } else if (text.ends_with('s')) {
    text.remove_suffix(1);
  }
  const std::optional<std::uint32_t> number = ParseNumber(text);
  if (!number) return std::nullopt;
  return std::min<Duration>(*number * unit, kMaxDelay);
}

// What an export would be, after the time that it would take.
Task<Answer> Export(Exchange& exchange) {
  const std::string_view text = Parameter(exchange.query(), "delay").value_or("0s");
  const std::optional<Duration> delay = ParseDelay(text);
  if (!delay) co_return ProblemAnswer(400, "`delay` is a length of time, such as 2s or 150ms");
  co_await exchange.loop().Sleep(*delay);
  co_return Answer{.body = "{\"export\":\"ready\"}\n"};
}

Task<Answer> Stream(Exchange& exchange) {
  const auto events = ParseNumber(Parameter(exchange.query(), "events").value_or("5"));
  const auto every = ParseDelay(Parameter(exchange.query(), "every").value_or("200ms"));
  if (!events || !every) co_return ProblemAnswer(400, "`events` is a number, `every` a length");
  net::Http1Stream& stream = exchange.TakeOver();
  bool open = co_await stream.Write(
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
      "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
  for (std::uint32_t i = 1; open && i <= std::min(*events, kMaxEvents); ++i) {
    const std::string event = absl::StrCat("event: order\ndata: {\"event\":", i, "}\n\n");
    open = co_await stream.Write(net::ChunkLine(event.size()).view(), event, net::kChunkEnd);
    co_await exchange.loop().Sleep(*every);
  }
  if (open) co_await stream.Write(net::kLastChunk);
  co_return Answer{};
}

Answer HeadersOf(const Exchange& exchange) {
  Answer answer;
  answer.body = "{";
  for (const net::Field& field : exchange.head().fields) {
    if (answer.body.size() > 1) answer.body += ",";
    net::AppendJsonString(field.name, &answer.body);
    answer.body += ":";
    net::AppendJsonString(field.value, &answer.body);
  }
  answer.body += "}\n";
  return answer;
}

Answer NotAllowed(std::string_view allowed) {
  Answer answer = ProblemAnswer(405, "this path does not take that method");
  net::AppendField("Allow", allowed, &answer.more_fields);
  return answer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<OrdersApi>> OrdersApi::Start(net::EventLoops& loops,
                                                            const net::HostPort& where) {
  auto api = std::make_unique<OrdersApi>();
  net::Handler handler = [self = api.get()](Exchange& exchange) { return self->Handle(exchange); };
  auto server = net::TcpServer::Start(loops, where, {}, net::HttpService(std::move(handler), {}));
  if (!server.ok()) return server.status();
  api->server_ = *std::move(server);
  return api;
}

Task<Answer> OrdersApi::Handle(Exchange& exchange) {
  const std::string_view path = exchange.path();
  if (path == "/count") co_return Answer{.body = absl::StrCat("{\"requests\":", requests(), "}\n")};
  if (path == "/healthz") co_return Answer{.content_type = "text/plain", .body = "ok\n"};
  ++requests_;
  if (path == "/v1/orders") co_return co_await Orders(exchange);
  const bool known =
      path == "/v1/exports" || path == "/v1/stream" || path == "/v1/headers" || path == "/v1/echo";
  if (!known) co_return ProblemAnswer(404, "there is nothing at this path");
  if (path == "/v1/headers") co_return HeadersOf(exchange);
  if (exchange.head().method != "GET") co_return NotAllowed("GET");
  if (path == "/v1/exports") co_return co_await Export(exchange);
  if (path == "/v1/stream") co_return co_await Stream(exchange);
  co_return co_await EchoWebSocket(exchange);
}

Task<Answer> OrdersApi::Orders(Exchange& exchange) {
  if (exchange.head().method == "POST") co_return co_await AddOrder(exchange);
  if (exchange.head().method != "GET" && exchange.head().method != "HEAD") {
    co_return NotAllowed("GET, HEAD, POST");
  }
  Answer answer;
  const std::lock_guard lock(mutex_);
  answer.body = "{\"orders\":[";
  for (const std::string& order : orders_) {
    if (&order != &orders_.front()) answer.body += ",";
    answer.body += order;
  }
  answer.body += "]}\n";
  co_return answer;
}

Task<Answer> OrdersApi::AddOrder(Exchange& exchange) {
  const absl::StatusOr<std::string> body = co_await exchange.ReadBody(kMaxOrderBytes);
  if (absl::IsResourceExhausted(body.status())) co_return ProblemAnswer(413, "an order is short");
  if (absl::IsDeadlineExceeded(body.status())) co_return ProblemAnswer(408, "the body was slow");
  if (!body.ok()) co_return ProblemAnswer(400, "the body broke off");
  boost::system::error_code error;
  const boost::json::value order = boost::json::parse(*body, error);
  if (error || !order.is_object()) co_return ProblemAnswer(400, "an order is a JSON object");

  Answer answer{.status = 201};
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = ++last_id_;
  orders_.push_back(
      absl::StrCat("{\"id\":", id, ",\"order\":", boost::json::serialize(order), "}"));
  if (orders_.size() > kKeptOrders) orders_.pop_front();
  answer.body = orders_.back() + "\n";
  net::AppendField("Location", "/v1/orders/" + std::to_string(id), &answer.more_fields);
  co_return answer;
}

}  // namespace sluice::orders_api
