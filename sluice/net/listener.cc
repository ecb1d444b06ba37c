#include "sluice/net/listener.h"

#include <sys/socket.h>

#include <boost/asio/ip/v6_only.hpp>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/base/log.h"

namespace sluice::net {
namespace {

using Acceptor = asio::basic_socket_acceptor<tcp, Executor>;

constexpr int kBacklog = 4096;  // the kernel lowers it to net.core.somaxconn
constexpr auto kPauseWithoutDescriptors = std::chrono::milliseconds(100);

absl::Status ListenError(const tcp::endpoint& endpoint, const error_code& error) {
  const std::string text = absl::StrCat("cannot listen on ", ToString(endpoint), ": ");
  if (error == asio::error::address_in_use) {
    return absl::AlreadyExistsError(absl::StrCat(text, "the port is in use"));
  }
  if (error == asio::error::access_denied) {
    return absl::PermissionDeniedError(absl::StrCat(text, error.message()));
  }
  return absl::UnavailableError(absl::StrCat(text, error.message()));
}

absl::StatusOr<Acceptor> Bind(EventLoop& loop, const tcp::endpoint& endpoint, bool shared) {
  Acceptor acceptor(loop.context());
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (const int on = 1; !error && shared) {
    ::setsockopt(acceptor.native_handle(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
  }
  if (!error && endpoint.protocol() == tcp::v6()) {
    acceptor.set_option(asio::ip::v6_only(endpoint.address() != asio::ip::address_v6::any()),
                        error);
  }
  if (!error) acceptor.bind(endpoint, error);
  if (error) return ListenError(endpoint, error);
  return acceptor;
}

// SO_REUSEADDR lets two sockets bind as long as none listens, so the trial listens, too.
absl::Status CheckThatPortIsFree(EventLoop& loop, const tcp::endpoint& endpoint) {
  absl::StatusOr<Acceptor> trial = Bind(loop, endpoint, /*shared=*/false);
  if (!trial.ok()) return trial.status();
  error_code error;
  trial->listen(1, error);
  return error ? ListenError(endpoint, error) : absl::OkStatus();
}

bool PassesByItself(const error_code& error) {
  return error == asio::error::connection_aborted || error == asio::error::interrupted ||
         error == boost::system::errc::protocol_error;
}

}  // namespace

Task<std::optional<Socket>> Listener::Accept() {
  bool told = false;
  while (acceptor_.is_open()) {
    Socket socket(loop_->context());
    auto [error] = co_await Await<error_code>(
        [&](auto done) { acceptor_.async_accept(socket, std::move(done)); });
    if (!error) co_return socket;
    if (!acceptor_.is_open() || PassesByItself(error)) continue;
    if (!std::exchange(told, true)) {
      log::Error("cannot accept connections for now", {{"why", error.message()}});
    }
    co_await loop_->Sleep(kPauseWithoutDescriptors);
  }
  co_return std::nullopt;
}

void Listener::Close() {
  error_code ignored;
  acceptor_.close(ignored);
}

absl::StatusOr<std::vector<Listener>> Listen(EventLoops& loops, const HostPort& where) {
  absl::StatusOr<std::vector<tcp::endpoint>> endpoints = Resolve(where);
  if (!endpoints.ok()) return endpoints.status();
  tcp::endpoint endpoint = endpoints->front();
  if (endpoint.port() != 0) {
    if (absl::Status status = CheckThatPortIsFree(loops[0], endpoint); !status.ok()) return status;
  }
  std::vector<Listener> listeners;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    absl::StatusOr<Acceptor> acceptor = Bind(loops[i], endpoint, /*shared=*/true);
    if (!acceptor.ok()) return acceptor.status();
    error_code error;
    acceptor->listen(kBacklog, error);
    if (error) return ListenError(endpoint, error);
    endpoint = acceptor->local_endpoint(error);  // port 0 has become a real one
    listeners.emplace_back(loops[i], *std::move(acceptor));
    listeners.back().endpoint_ = endpoint;
  }
  return listeners;
}

}  // namespace sluice::net
