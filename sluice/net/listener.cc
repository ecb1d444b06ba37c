#include "sluice/net/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/base/log.h"

namespace sluice::net {

// The kernel tells of the queue each turn as long as somebody is in it, so that one accept a turn
// is enough and none is in vain. While nobody waits here it is asked not to.
class Listener::Queue final : private ReadySet::Member {
 public:
  Queue(ReadySet& set, Socket socket) : set_(set), socket_(std::move(socket)) {}

  [[nodiscard]] const Socket& socket() const { return socket_; }

  // Spurious wakes happen.
  struct Turn final : Waiter {
    explicit Turn(Queue& of) : queue(of) {}
    bool await_ready() const { return !queue.socket_.open(); }
    void await_suspend(std::coroutine_handle<> handle) {
      waiting = handle;
      queue.Wait(*this);
    }
    void await_resume() const {}
    void OnWake(Wake /*why*/) override { waiting.resume(); }

    Queue& queue;
    std::coroutine_handle<> waiting;
  };

  void Close() {
    socket_.Close();
    set_.WakeAll(line_, Wake::kCancelled);
  }

 private:
  void Wait(Waiter& waiter) {
    set_.Stand(waiter, line_);
    if (std::exchange(told_, true)) return;
    if (std::exchange(added_, true)) return set_.Change(socket_.descriptor(), EPOLLIN, *this);
    // Without a place in the set there is only trying.
    if (!set_.Add(socket_.descriptor(), EPOLLIN, *this)) set_.Soon(waiter);
  }

  void OnReady(std::uint32_t /*events*/) override {
    if (line_.empty()) {
      told_ = false;
      return set_.Change(socket_.descriptor(), 0, *this);
    }
    set_.WakeAll(line_, Wake::kReady);
  }

  ReadySet& set_;
  Socket socket_;
  Line line_;
  bool added_ = false;
  bool told_ = false;  // of those who come
};

namespace {

constexpr int kBacklog = 4096;  // the kernel lowers it to net.core.somaxconn
constexpr auto kPauseWithoutDescriptors = std::chrono::milliseconds(100);

std::string TextOf(int error) { return std::strerror(error); }

absl::Status ListenError(const tcp::endpoint& endpoint, int error) {
  const std::string text = absl::StrCat("cannot listen on ", ToString(endpoint), ": ");
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(absl::StrCat(text, "the port is in use"));
  }
  if (error == EACCES) return absl::PermissionDeniedError(absl::StrCat(text, TextOf(error)));
  return absl::UnavailableError(absl::StrCat(text, TextOf(error)));
}

bool SetOption(const Socket& socket, int level, int option, int value) {
  return ::setsockopt(socket.descriptor(), level, option, &value, sizeof(value)) == 0;
}

// Not listening yet. What is accepted has the listening socket's TCP_NODELAY.
absl::StatusOr<Socket> Bind(const tcp::endpoint& endpoint, bool shared) {
  const int family = endpoint.protocol().family();
  Socket socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), {});
  bool good = socket.open() && SetOption(socket, SOL_SOCKET, SO_REUSEADDR, 1) &&
              SetOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  if (good && shared) good = SetOption(socket, SOL_SOCKET, SO_REUSEPORT, 1);
  if (good && family == AF_INET6) {
    const bool only = endpoint.address() != asio::ip::address_v6::any();
    good = SetOption(socket, IPPROTO_IPV6, IPV6_V6ONLY, only ? 1 : 0);
  }
  good = good &&
         ::bind(socket.descriptor(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0;
  if (!good) return ListenError(endpoint, errno);
  return socket;
}

// SO_REUSEADDR lets two sockets bind as long as none listens, so the trial listens, too.
absl::Status CheckThatPortIsFree(const tcp::endpoint& endpoint) {
  absl::StatusOr<Socket> trial = Bind(endpoint, /*shared=*/false);
  if (!trial.ok()) return trial.status();
  if (::listen(trial->descriptor(), 1) != 0) return ListenError(endpoint, errno);
  return absl::OkStatus();
}

bool PassesByItself(int error) {
  return error == ECONNABORTED || error == EINTR || error == EPROTO;
}

// Nobody is in the queue any more.
bool IsEmpty(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

Socket TakeFrom(const Socket& queue) {
  tcp::endpoint peer;
  auto size = static_cast<socklen_t>(peer.capacity());
  const int descriptor =
      ::accept4(queue.descriptor(), peer.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  return {descriptor, peer};
}

}  // namespace

Listener::Listener(EventLoop& loop, Socket listening, const tcp::endpoint& endpoint)
    : loop_(&loop),
      queue_(std::make_unique<Queue>(loop.ready(), std::move(listening))),
      endpoint_(endpoint) {}

Listener::Listener(Listener&& other) noexcept = default;
Listener::~Listener() = default;

Task<std::optional<Socket>> Listener::Accept() {
  bool told = false;
  while (true) {
    co_await Queue::Turn(*queue_);
    if (!queue_->socket().open()) co_return std::nullopt;
    Socket socket = TakeFrom(queue_->socket());
    if (socket.open()) co_return socket;
    const int error = errno;
    if (IsEmpty(error) || PassesByItself(error)) continue;
    if (!std::exchange(told, true)) {
      log::Error("cannot accept connections for now", {{"why", TextOf(error)}});
    }
    co_await loop_->Sleep(kPauseWithoutDescriptors);
  }
}

void Listener::Close() { queue_->Close(); }

absl::StatusOr<std::vector<Listener>> Listen(EventLoops& loops, const HostPort& where) {
  absl::StatusOr<std::vector<tcp::endpoint>> endpoints = Resolve(where);
  if (!endpoints.ok()) return endpoints.status();
  tcp::endpoint endpoint = endpoints->front();
  if (endpoint.port() != 0) {
    if (absl::Status status = CheckThatPortIsFree(endpoint); !status.ok()) return status;
  }
  std::vector<Listener> listeners;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    absl::StatusOr<Socket> socket = Bind(endpoint, /*shared=*/true);
    if (!socket.ok()) return socket.status();
    if (::listen(socket->descriptor(), kBacklog) != 0) return ListenError(endpoint, errno);
    // Port 0 has become a real one.
    auto size = static_cast<socklen_t>(endpoint.capacity());
    ::getsockname(socket->descriptor(), endpoint.data(), &size);
    listeners.emplace_back(loops[i], *std::move(socket), endpoint);
  }
  return listeners;
}

}  // namespace sluice::net
