#include "sluice/net/tcp_server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <future>
#include <list>
#include <utility>

#include "sluice/base/log.h"

namespace sluice::net {

// What one loop's thread owns. Kept alive by the coroutines that run in it.
class TcpServer::PerLoop : public std::enable_shared_from_this<PerLoop> {
 public:
  PerLoop(Listener listener, std::size_t max_sessions, Doorkeeper doorkeeper, Factory factory,
          std::shared_ptr<std::atomic<std::size_t>> open,
          std::shared_ptr<std::atomic<std::uint64_t>> refused)
      : listener_(std::move(listener)),
        max_sessions_(max_sessions),
        doorkeeper_(std::move(doorkeeper)),
        factory_(std::move(factory)),
        open_(std::move(open)),
        refused_(std::move(refused)),
        patience_(*this) {}

  [[nodiscard]] EventLoop& loop() { return listener_.loop(); }

  static Task<void> AcceptAll(std::shared_ptr<PerLoop> self) {
    while (true) {
      std::optional<Socket> socket = co_await self->listener_.Accept();
      if (!socket) break;
      std::optional<ClientConnections::Pass> pass = self->LetIn(*socket);
      if (!pass) continue;
      Spawn(Serve(self, self->factory_(self->loop(), *std::move(socket)), *std::move(pass)));
      co_await Room{*self};
    }
    self->accepting_ = false;
    self->TellIfEmpty();
  }

  void Drain(Duration limit, std::shared_ptr<std::promise<void>> done) {
    done_ = std::move(done);
    draining_ = true;
    listener_.Close();
    if (room_waiter_) std::exchange(room_waiter_, nullptr).resume();
    // A session may end inside the call, and leave the list.
    for (auto next = sessions_.begin(); next != sessions_.end();) (*next++)->Drain();
    if (limit <= Duration::zero()) {
      AbortAll();
    } else {
      patience_.Set(limit);
    }
    TellIfEmpty();
  }

 private:
  // Waits while the loop is at its bound.
  struct Room {
    PerLoop& self;
    bool await_ready() const {
      return self.draining_ || self.sessions_.size() < self.max_sessions_;
    }
    void await_suspend(std::coroutine_handle<> waiter) const { self.room_waiter_ = waiter; }
    void await_resume() const {}
  };

  struct Patience final : Deadline {
    explicit Patience(PerLoop& owner) : Deadline(owner.loop().deadlines()), self(owner) {}
    void OnDeadline() override { self.AbortAll(); }
    PerLoop& self;
  };

  std::optional<ClientConnections::Pass> LetIn(const Socket& socket) {
    if (!doorkeeper_) return ClientConnections::Pass();
    std::optional<ClientConnections::Pass> pass = doorkeeper_(loop(), socket.peer());
    if (!pass) TellOfRefusal();
    return pass;
  }

  // A client that keeps knocking must not fill the log.
  void TellOfRefusal() {
    refused_->fetch_add(1, std::memory_order_relaxed);
    const auto now = std::chrono::steady_clock::now();
    if (told_ && now < *told_ + kTellEvery) return;
    told_ = now;
    log::Warning("connections refused: a client has as many as it may",
                 {{"loop", loop().index()}, {"so_far", refused_->load(std::memory_order_relaxed)}});
  }

  // `pass` is given back when the connection has ended.
  static Task<void> Serve(std::shared_ptr<PerLoop> self, std::unique_ptr<Session> session,
                          [[maybe_unused]] ClientConnections::Pass pass) {
    const auto place = self->sessions_.insert(self->sessions_.end(), session.get());
    self->open_->fetch_add(1, std::memory_order_relaxed);
    if (self->draining_) session->Drain();
    co_await session->Run();
    self->sessions_.erase(place);
    session.reset();
    self->open_->fetch_sub(1, std::memory_order_relaxed);
    if (self->room_waiter_) std::exchange(self->room_waiter_, nullptr).resume();
    self->TellIfEmpty();
  }

  void AbortAll() {
    for (auto next = sessions_.begin(); next != sessions_.end();) (*next++)->Abort();
  }

  void TellIfEmpty() {
    if (!done_ || accepting_ || !sessions_.empty()) return;
    patience_.Clear();
    std::exchange(done_, nullptr)->set_value();
  }

  static constexpr auto kTellEvery = std::chrono::seconds(1);

  Listener listener_;
  const std::size_t max_sessions_;
  const Doorkeeper doorkeeper_;
  Factory factory_;
  std::list<Session*> sessions_;
  const std::shared_ptr<std::atomic<std::size_t>> open_;       // of all loops
  const std::shared_ptr<std::atomic<std::uint64_t>> refused_;  // likewise
  std::optional<std::chrono::steady_clock::time_point> told_;
  std::coroutine_handle<> room_waiter_;
  bool accepting_ = true;
  bool draining_ = false;
  std::shared_ptr<std::promise<void>> done_;
  Patience patience_;
};

absl::StatusOr<std::unique_ptr<TcpServer>> TcpServer::Start(EventLoops& loops,
                                                            const HostPort& where,
                                                            const Options& options,
                                                            Factory factory) {
  absl::StatusOr<std::vector<Listener>> listeners = Listen(loops, where);
  if (!listeners.ok()) return listeners.status();
  auto server = std::unique_ptr<TcpServer>(new TcpServer());
  server->loops_ = &loops;
  server->endpoint_ = listeners->front().endpoint();
  const std::size_t share = std::max<std::size_t>(1, options.max_connections / loops.size());
  for (Listener& listener : *listeners) {
    server->per_loop_.push_back(std::make_shared<PerLoop>(
        std::move(listener), share, options.doorkeeper, factory, server->open_, server->refused_));
  }
  for (const std::shared_ptr<PerLoop>& part : server->per_loop_) {
    part->loop().Post([part] { Spawn(PerLoop::AcceptAll(part)); });
  }
  return server;
}

TcpServer::~TcpServer() { Drain(Duration::zero()); }

void TcpServer::Drain(Duration limit) {
  if (!loops_->running()) return per_loop_.clear();  // nothing was accepted
  std::vector<std::future<void>> ends;
  for (const std::shared_ptr<PerLoop>& part : per_loop_) {
    auto done = std::make_shared<std::promise<void>>();
    ends.push_back(done->get_future());
    part->loop().Post([part, limit, done] { part->Drain(limit, done); });
  }
  for (std::future<void>& end : ends) end.wait();
  // The last steps, and the memory, belong to the loops' threads.
  for (std::shared_ptr<PerLoop>& part : per_loop_) {
    EventLoop& loop = part->loop();
    loop.Post([last = std::move(part)] {});
  }
  per_loop_.clear();
  loops_->OnEach([](EventLoop&) {});
}

}  // namespace sluice::net
