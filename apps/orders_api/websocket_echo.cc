#include "apps/orders_api/websocket_echo.h"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <utility>

#include "sluice/net/await.h"

namespace sluice::orders_api {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using net::error_code;

constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 20;

http::request<http::empty_body> CopyOf(const net::RequestHead& head) {
  http::request<http::empty_body> request;
  request.method_string(beast::string_view(head.method.data(), head.method.size()));
  request.target(beast::string_view(head.path.data(), head.path.size()));
  request.version(10 + static_cast<unsigned>(head.minor_version));
  for (const net::Field& field : head.fields) {
    request.insert(beast::string_view(field.name.data(), field.name.size()),
                   beast::string_view(field.value.data(), field.value.size()));
  }
  return request;
}

net::Task<void> Serve(net::Socket& socket, http::request<http::empty_body> request) {
  websocket::stream<net::Socket&> stream(socket);
  stream.read_message_max(kMaxMessageBytes);
  auto [refused] = co_await net::Await<error_code>(
      [&](auto done) { stream.async_accept(request, std::move(done)); });
  if (refused) co_return;
  beast::flat_buffer message;
  while (true) {
    auto [ended, size] = co_await net::Await<error_code, std::size_t>(
        [&](auto done) { stream.async_read(message, std::move(done)); });
    if (ended) co_return;
    stream.text(stream.got_text());
    auto [lost, sent] = co_await net::Await<error_code, std::size_t>(
        [&](auto done) { stream.async_write(message.data(), std::move(done)); });
    if (lost) co_return;
    message.consume(message.size());
  }
}

}  // namespace

net::Task<net::Answer> EchoWebSocket(net::Exchange& exchange) {
  http::request<http::empty_body> request = CopyOf(exchange.head());
  if (!websocket::is_upgrade(request)) {
    net::Answer answer = net::ProblemAnswer(426, "this path speaks WebSocket");
    net::AppendField("Upgrade", "websocket", &answer.more_fields);
    co_return answer;
  }
  co_await Serve(exchange.TakeOver().socket(), std::move(request));
  co_return net::Answer{};
}

}  // namespace sluice::orders_api
