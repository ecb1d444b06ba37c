#include "sluice/net/redis_connection.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/base/random.h"
#include "sluice/base/steady_now.h"
#include "sluice/net/await.h"
#include "sluice/net/internal/redis_link.h"
#include "sluice/net/internal/redis_queue.h"

namespace sluice::net {
namespace {

using internal::RedisLink;
using internal::RedisQueue;
using internal::RedisTarget;
using Instant = std::chrono::steady_clock::time_point;

// Empty: it has to be found.
std::string ServerOf(const RedisConnectionOptions& options) {
  if (options.find_address) return {};
  return options.unix_socket.empty() ? ToString(options.address) : options.unix_socket;
}

Instant InstantOf(Time time) {
  return Instant(
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(time.time_since_epoch()));
}

}  // namespace

// Lives as long as a coroutine or a handler of it: what those find after Close() is closed_.
class RedisConnection::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(EventLoop& loop, RedisConnectionOptions options);

  void Begin();
  void Close();
  absl::Status Send(std::string_view command, Time deadline, Done done, std::uint32_t replies);
  void Renew(std::string_view why);

  [[nodiscard]] RedisState state() const { return state_; }
  [[nodiscard]] const absl::Status& error() const { return error_; }
  [[nodiscard]] std::size_t waiting() const { return queue_.size(); }
  [[nodiscard]] const std::string& server() const { return server_; }

 private:
  static Task<void> Run(std::shared_ptr<Core> self, std::shared_ptr<RedisLink> link, Time timeout);
  static Task<void> Write(std::shared_ptr<Core> self, std::shared_ptr<RedisLink> link);
  absl::Status Dispatch(RedisLink& link);
  void Connect();
  void OnFound(const RedisAddresses& found, Time timeout);
  void ConnectTo(HostPort address, Time timeout);
  static Task<absl::Status> Confirm(std::shared_ptr<Core> self, Time timeout);
  void Look();
  void OnLooked(const RedisAddresses& found);
  [[nodiscard]] absl::Status StillThere(const RedisAddresses& found) const;
  void BeReady();
  void Lose(const absl::Status& why);
  void Enter(RedisState state);
  void WaitForNext();
  void PostWrite();
  void WatchSilence();
  void OnSilence();
  void WakeAt(Time deadline);
  void OnTimer();
  void Call(std::string server);
  [[nodiscard]] std::string name() const;

  EventLoop& loop_;
  const RedisConnectionOptions options_;
  HostPort address_;
  std::string server_;             // in words; empty: none was found yet
  std::shared_ptr<TlsPeer> peer_;  // of address_; null: no TLS
  absl::Status full_;              // ready made, for it is given when there is much to do

  RedisState state_ = RedisState::kConnecting;
  absl::Status error_;
  bool closed_ = false;
  bool awaited_ = true;              // the first attempt is under way: commands wait for it
  std::shared_ptr<RedisLink> link_;  // null while waiting
  RedisQueue queue_;
  bool writing_ = false;  // or about to
  std::string written_;   // what is being written

  Duration backoff_;          // the next wait at most
  std::size_t attempts_ = 0;  // in a row that failed
  Time ready_since_;
  Timer retry_;
  Timer timer_;  // for deadlines
  Time wakes_at_ = Time::max();
  Alarm<Core, &Core::OnSilence> silence_;
  Alarm<Core, &Core::Look> look_;  // whether the server is still where it was
};

RedisConnection::Core::Core(EventLoop& loop, RedisConnectionOptions options)
    : loop_(loop),
      options_(std::move(options)),
      queue_(options_.max_waiting, options_.max_unsent_bytes),
      backoff_(options_.min_backoff),
      retry_(loop.timers()),
      timer_(loop.timers()),
      silence_(*this, loop.deadlines()),
      look_(*this, loop.deadlines()) {
  Call(ServerOf(options_));
}

void RedisConnection::Core::Call(std::string server) {
  server_ = std::move(server);
  full_ = absl::ResourceExhaustedError(absl::StrCat(name(), ": too many commands wait"));
}

std::string RedisConnection::Core::name() const {
  return server_.empty() ? "redis" : "redis " + server_;
}

void RedisConnection::Core::Begin() {
  loop_.Post([self = shared_from_this()] {
    if (!self->closed_) self->Connect();
  });
}

void RedisConnection::Core::Close() {
  closed_ = true;
  if (link_) link_->Close();
  link_.reset();
  retry_.Cancel();
  timer_.Cancel();
  silence_.Clear();
  look_.Clear();
  queue_.FailAll(
      absl::CancelledError(absl::StrCat(name(), ": the connection is not needed any more")));
}

void RedisConnection::Core::Connect() {
  const Time timeout = SteadyNow() + options_.connect_timeout;
  if (!options_.find_address) return ConnectTo(options_.address, timeout);
  options_.find_address(options_.connect_timeout / 2,
                        [self = shared_from_this(), timeout](const RedisAddresses& found) {
                          if (!self->closed_) self->OnFound(found, timeout);
                        });
}

void RedisConnection::Core::OnFound(const RedisAddresses& found, Time timeout) {
  if (!found.ok()) {
    Call({});
    return Lose(found.status());
  }
  const HostPort& address = (*found)[attempts_ % found->size()];
  Call(ToString(address));
  ConnectTo(address, timeout);
}

void RedisConnection::Core::ConnectTo(HostPort address, Time timeout) {
  if (options_.tls && (!peer_ || address != address_)) {
    peer_ = std::make_shared<TlsPeer>(options_.tls, address.host);
  }
  address_ = std::move(address);
  link_ = std::make_shared<RedisLink>(
      loop_, options_, RedisTarget{.address = address_, .peer = peer_, .timeout = timeout});
  Spawn(Run(shared_from_this(), link_, timeout));
}

// A server that stood still may have answered the greeting long after it was asked for, and not
// know that it was replaced meanwhile.
Task<absl::Status> RedisConnection::Core::Confirm(std::shared_ptr<Core> self, Time timeout) {
  const Duration left = std::max(timeout - SteadyNow(), Duration::zero());
  auto [found] = co_await Await<RedisAddresses>([&](auto done) {
    self->options_.find_address(std::min(left, self->options_.connect_timeout / 2),
                                [done](RedisAddresses there) { done(std::move(there)); });
  });
  co_return self->StillThere(found);
}

// Whoever cannot say where the server is does not end what works.
absl::Status RedisConnection::Core::StillThere(const RedisAddresses& found) const {
  if (!found.ok() || std::ranges::find(*found, address_) != found->end()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("another server is in its place: ", ToString(found->front())));
}

// While it is ready, now and then.
void RedisConnection::Core::Look() {
  options_.find_address(options_.connect_timeout / 2,
                        [self = shared_from_this(), link = link_](const RedisAddresses& found) {
                          if (link == self->link_) self->OnLooked(found);
                        });
}

void RedisConnection::Core::OnLooked(const RedisAddresses& found) {
  const absl::Status still = StillThere(found);
  if (!still.ok()) return Lose(still);
  look_.Set(options_.find_every);
}

Task<void> RedisConnection::Core::Run(std::shared_ptr<Core> self, std::shared_ptr<RedisLink> link,
                                      Time timeout) {
  absl::Status status = co_await RedisLink::Open(link);
  if (link != self->link_) co_return;
  if (status.ok() && self->options_.find_address) status = co_await Confirm(self, timeout);
  if (link != self->link_) co_return;
  if (status.ok()) self->BeReady();
  while (status.ok() && link == self->link_) {
    status = co_await link->Read();
    if (status.ok() && link == self->link_) status = self->Dispatch(*link);
  }
  if (link == self->link_) self->Lose(status);
}

void RedisConnection::Core::BeReady() {
  ready_since_ = SteadyNow();
  awaited_ = false;
  attempts_ = 0;
  if (options_.find_address) look_.Set(options_.find_every);
  Enter(RedisState::kReady);
  PostWrite();
}

void RedisConnection::Core::Enter(RedisState state) {
  state_ = state;
  if (options_.on_state) options_.on_state(state);
}

// Gives out all replies that have come. Each may end the connection.
absl::Status RedisConnection::Core::Dispatch(RedisLink& link) {
  RedisReplyReader::Step step = RedisReplyReader::Step::kReply;
  bool heard = false;
  while (&link == link_.get()) {
    RedisReply reply;
    step = link.reader().Next(&reply);
    if (step != RedisReplyReader::Step::kReply) break;
    heard = true;
    if (!queue_.Deliver(std::move(reply))) {
      return absl::UnavailableError("the server says what nobody asked for");
    }
  }
  if (&link != link_.get()) return absl::OkStatus();
  if (heard) WatchSilence();
  if (step == RedisReplyReader::Step::kBroken) return absl::UnavailableError(link.reader().why());
  return absl::OkStatus();
}

void RedisConnection::Core::Lose(const absl::Status& why) {
  error_ = absl::UnavailableError(absl::StrCat(name(), ": ", why.message()));
  awaited_ = false;
  silence_.Clear();
  look_.Clear();
  if (link_) link_->Close();
  link_.reset();
  if (state_ != RedisState::kReady) ++attempts_;
  if (state_ == RedisState::kReady && SteadyNow() - ready_since_ >= options_.max_backoff) {
    backoff_ = options_.min_backoff;
  }
  WaitForNext();
  const std::shared_ptr<Core> self = shared_from_this();  // any callback may let go of us
  Enter(RedisState::kWaiting);
  queue_.FailAll(error_);
}

void RedisConnection::Core::WaitForNext() {
  const Duration drawn = options_.jitter ? options_.jitter(backoff_) : DrawEvenly(backoff_);
  backoff_ = std::min(backoff_ * 2, options_.max_backoff);
  retry_.Start(drawn, [self = shared_from_this()](bool come) {
    if (!come || self->closed_) return;
    self->Enter(RedisState::kConnecting);
    if (!self->closed_) self->Connect();
  });
}

absl::Status RedisConnection::Core::Send(std::string_view command, Time deadline, Done done,
                                         std::uint32_t replies) {
  if (closed_) return absl::CancelledError();
  if (state_ != RedisState::kReady && !awaited_) return error_;
  if (!queue_.Push(command, replies, deadline, done)) return full_;
  if (deadline < wakes_at_) WakeAt(deadline);
  if (state_ == RedisState::kReady) PostWrite();
  return absl::OkStatus();
}

void RedisConnection::Core::Renew(std::string_view why) {
  if (state_ != RedisState::kReady || closed_) return;
  loop_.Post([self = shared_from_this(), link = link_, text = std::string(why)] {
    if (link == self->link_) self->Lose(absl::UnavailableError(text));
  });
}

// Once a turn of the loop: what is sent until then leaves together.
void RedisConnection::Core::PostWrite() {
  if (writing_ || !queue_.has_unsent()) return;
  writing_ = true;
  loop_.Post([self = shared_from_this()] {
    if (self->state_ == RedisState::kReady && !self->closed_) {
      Spawn(Write(self, self->link_));
    } else {
      self->writing_ = false;
    }
  });
}

Task<void> RedisConnection::Core::Write(std::shared_ptr<Core> self,
                                        std::shared_ptr<RedisLink> link) {
  bool whole = true;
  while (whole && link == self->link_ && self->queue_.has_unsent()) {
    // Of what is sent nothing is late, though the timer may be.
    if (self->wakes_at_ <= SteadyNow()) self->OnTimer();
    const bool first = self->queue_.in_flight() == 0;
    self->queue_.TakeUnsent(&self->written_);
    if (first) self->WatchSilence();
    whole = co_await link->Write(self->written_);
  }
  self->writing_ = false;
  if (link != self->link_) co_return self->PostWrite();
  if (!whole) self->Lose(absl::UnavailableError("the connection was ended"));
}

void RedisConnection::Core::WatchSilence() {
  if (queue_.in_flight() > 0) {
    silence_.Set(options_.max_silence);
  } else {
    silence_.Clear();
  }
}

void RedisConnection::Core::OnSilence() {
  Lose(absl::UnavailableError("the server does not answer any more"));
}

void RedisConnection::Core::WakeAt(Time deadline) {
  wakes_at_ = deadline;
  timer_.Start(InstantOf(deadline), [self = shared_from_this()](bool come) {
    if (come && !self->closed_) self->OnTimer();
  });
}

void RedisConnection::Core::OnTimer() {
  wakes_at_ = Time::max();
  const Time next = queue_.Expire(SteadyNow());
  if (!closed_ && next < wakes_at_) WakeAt(next);
}

RedisConnection::RedisConnection(EventLoop& loop, RedisConnectionOptions options)
    : core_(std::make_shared<Core>(loop, std::move(options))) {
  core_->Begin();
}

// NOLINTNEXTLINE(bugprone-exception-escape): we throw nothing, nor may a callback
RedisConnection::~RedisConnection() { core_->Close(); }

absl::Status RedisConnection::Send(std::string_view command, Time deadline, Done done,
                                   std::uint32_t replies) {
  return core_->Send(command, deadline, std::move(done), replies);
}

void RedisConnection::Renew(std::string_view why) { core_->Renew(why); }

RedisState RedisConnection::state() const { return core_->state(); }
const absl::Status& RedisConnection::error() const { return core_->error(); }
std::size_t RedisConnection::waiting() const { return core_->waiting(); }
const std::string& RedisConnection::server() const { return core_->server(); }

}  // namespace sluice::net
