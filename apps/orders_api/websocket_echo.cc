#include "apps/orders_api/websocket_echo.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <thread>
#include <utility>

#include "sluice/net/await.h"

namespace sluice::orders_api {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;

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

using Socket = net::tcp::socket;

net::Task<void> Echo(Socket& socket, http::request<http::empty_body> request) {
  websocket::stream<Socket&> stream(socket);
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

// All echoes run on one thread of their own, where Asio has the sockets.
class EchoThread {
 public:
  EchoThread() = default;
  EchoThread(const EchoThread&) = delete;
  EchoThread& operator=(const EchoThread&) = delete;
  ~EchoThread() {
    context_.stop();
    thread_.join();
  }

  // Then `done` is called there. The descriptor stays its owner's, who can shut it down meanwhile.
  template <class Done>
  void Serve(int descriptor, http::request<http::empty_body> request, Done done) {
    net::asio::post(context_, [this, descriptor, request = std::move(request),
                               done = std::move(done)]() mutable {
      net::Spawn(Run(context_, descriptor, std::move(request), std::move(done)));
    });
  }

 private:
  template <class Done>
  static net::Task<void> Run(net::asio::io_context& context, int descriptor,
                             http::request<http::empty_body> request, Done done) {
    {
      Socket socket(context);
      error_code failed;
      socket.assign(net::tcp::v4(), descriptor, failed);
      if (!failed) {
        co_await Echo(socket, std::move(request));
        socket.release(failed);
      }
    }
    done();
  }

  net::asio::io_context context_;
  net::asio::executor_work_guard<net::asio::io_context::executor_type> guard_{
      context_.get_executor()};
  std::thread thread_{[this] { context_.run(); }};
};

}  // namespace

net::Task<net::Answer> EchoWebSocket(net::Exchange& exchange) {
  http::request<http::empty_body> request = CopyOf(exchange.head());
  if (!websocket::is_upgrade(request)) {
    net::Answer answer = net::ProblemAnswer(426, "this path speaks WebSocket");
    net::AppendField("Upgrade", "websocket", &answer.more_fields);
    co_return answer;
  }
  static EchoThread echoes;
  net::Http1Stream& stream = exchange.TakeOver();
  stream.loop().BeginOutside();
  co_await net::Await<>([&](auto done) {
    echoes.Serve(stream.descriptor(), std::move(request),
                 [&loop = stream.loop(), done] { loop.Post(done); });
  });
  stream.loop().EndOutside();
  co_return net::Answer{};
}

}  // namespace sluice::orders_api
