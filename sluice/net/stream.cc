#include "sluice/net/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/net/internal/tls_session.h"

namespace sluice::net {
namespace {

using internal::TlsSession;

// The parts that are not written yet.
class Parts {
 public:
  Parts(std::string_view first, std::string_view second, std::string_view third) {
    for (const std::string_view part : {first, second, third}) {
      if (part.empty()) continue;
      // NOLINTNEXTLINE: iovec is for reading and writing alike
      parts_[count_++] = {const_cast<char*>(part.data()), part.size()};
    }
  }

  [[nodiscard]] bool empty() const { return at_ == count_; }

  // For TLS: the next record's worth of bytes. Parts that are short are joined in `scratch`.
  [[nodiscard]] std::string_view NextRecord(
      std::span<char, TlsSession::kRecordBytes> scratch) const {
    const iovec& front = parts_[at_];
    if (count_ - at_ == 1 || front.iov_len >= scratch.size()) {
      return {static_cast<const char*>(front.iov_base), front.iov_len};
    }
    std::size_t size = 0;
    for (std::size_t i = at_; i < count_; ++i) {
      const std::size_t more = std::min(parts_[i].iov_len, scratch.size() - size);
      std::memcpy(scratch.data() + size, parts_[i].iov_base, more);
      size += more;
    }
    return {scratch.data(), size};
  }

  void Skip(std::size_t size) {
    while (at_ < count_ && size >= parts_[at_].iov_len) size -= parts_[at_++].iov_len;
    if (at_ == count_) return;
    parts_[at_].iov_base = static_cast<char*>(parts_[at_].iov_base) + size;
    parts_[at_].iov_len -= size;
  }

  // The errno of sendmsg; 0 if it wrote something.
  int SendSome(int descriptor) {
    constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
    ssize_t sent = 0;
    if (count_ - at_ == 1) {
      sent = ::send(descriptor, parts_[at_].iov_base, parts_[at_].iov_len, kFlags);
    } else {
      msghdr message{};
      message.msg_iov = &parts_[at_];
      message.msg_iovlen = count_ - at_;
      sent = ::sendmsg(descriptor, &message, kFlags);
    }
    if (sent < 0) return errno;
    Skip(static_cast<std::size_t>(sent));
    return 0;
  }

 private:
  std::array<iovec, 3> parts_{};
  std::size_t count_ = 0;
  std::size_t at_ = 0;
};

Side SideOf(TlsSession::Step step) {
  return step == TlsSession::Step::kWantWrite ? Side::kWrite : Side::kRead;
}

bool Waits(TlsSession::Step step) {
  return step == TlsSession::Step::kWantRead || step == TlsSession::Step::kWantWrite;
}

}  // namespace

class Stream::SideAwaiter final : private Waiter {
 public:
  SideAwaiter(Stream& stream, Side side) : stream_(stream), side_(side) {}

  bool await_ready() const { return stream_.aborted_; }
  void await_suspend(std::coroutine_handle<> waiting) {
    waiting_ = waiting;
    cancelled_ = stream_.waits_cancelled_;
    if (side_ == Side::kRead && stream_.readiness_.readable()) {
      return stream_.loop_.ready().Soon(*this);
    }
    stream_.readiness_.Wait(side_, *this);
  }
  Wake await_resume() const { return why_; }

 private:
  void OnWake(Wake why) override {
    // Who was due already is in no line that could be cancelled.
    why_ = stream_.waits_cancelled_ == cancelled_ ? why : Wake::kCancelled;
    waiting_.resume();
  }

  Stream& stream_;
  const Side side_;
  Wake why_ = Wake::kCancelled;
  unsigned cancelled_ = 0;  // waits of the stream when this one began
  std::coroutine_handle<> waiting_;
};

Stream::Stream(EventLoop& loop, Socket socket)
    : Deadline(loop.deadlines()),
      loop_(loop),
      socket_(std::move(socket)),
      readiness_(loop.ready()) {
  if (socket_.open()) Watch(/*to_write=*/false);
}

Stream::~Stream() {
  if (tls_ && !aborted_) static_cast<void>(tls_->End());
}

// What the kernel does not let be watched is of no use.
void Stream::Watch(bool to_write) {
  if (!readiness_.Watch(descriptor(), to_write)) Abort();
}

Task<bool> Stream::Connect(tcp::endpoint endpoint) {
  const int error = co_await TryConnect(endpoint);
  co_return error == 0;
}

Task<int> Stream::TryConnect(tcp::endpoint endpoint) {
  const int family = endpoint.protocol().family();
  socket_ = Socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), endpoint);
  if (!socket_.open()) co_return errno;
  const int on = 1;
  ::setsockopt(descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const int failed =
      ::connect(descriptor(), endpoint.data(), static_cast<socklen_t>(endpoint.size()));
  if (failed != 0 && errno != EINPROGRESS) co_return errno;
  Watch(/*to_write=*/true);
  if (failed == 0) co_return aborted_ ? ECANCELED : 0;
  const Wake why = co_await SideAwaiter(*this, Side::kWrite);
  if (timed_out_) co_return ETIMEDOUT;
  if (why != Wake::kReady || aborted_) co_return ECANCELED;
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
  co_return error;
}

Task<bool> Stream::Write(std::string_view first, std::string_view second, std::string_view third) {
  if (tls_) [[unlikely]]
    return WriteTls(first, second, third);
  return WritePlain(first, second, third);
}

Task<bool> Stream::WritePlain(std::string_view first, std::string_view second,
                              std::string_view third) {
  Parts parts(first, second, third);
  while (!parts.empty()) {
    const int error = parts.SendSome(descriptor());
    if (error == 0 || error == EINTR) continue;
    if (error != EAGAIN && error != EWOULDBLOCK) co_return false;
    const Wake why = co_await SideAwaiter(*this, Side::kWrite);
    if (why != Wake::kReady || timed_out_) co_return false;
  }
  co_return true;
}

bool Stream::Readable() {
  if (tls_) [[unlikely]]
    return ReadableTls();
  return Peek();
}

bool Stream::Peek() {
  char byte = 0;
  const ssize_t got = ::recv(descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  readiness_.NoteReadable();
  return true;
}

Task<bool> Stream::WaitFor(Side side) {
  const Wake why = co_await SideAwaiter(*this, side);
  co_return why == Wake::kReady && !timed_out_ && !aborted_;
}

Task<absl::Status> Stream::AcceptTls(const TlsServerContext& context) {
  tls_ = std::make_unique<TlsSession>(context, descriptor(), readiness_);
  return Handshake();
}

Task<absl::Status> Stream::ConnectTls(std::shared_ptr<TlsPeer> peer) {
  tls_ = std::make_unique<TlsSession>(std::move(peer), descriptor(), readiness_);
  return Handshake();
}

Task<absl::Status> Stream::Handshake() {
  TlsSession::Step step = tls_->Handshake();
  bool there = true;
  while (there && Waits(step)) {
    there = co_await WaitFor(SideOf(step));
    if (there) step = tls_->Handshake();
  }
  if (step == TlsSession::Step::kDone) co_return absl::OkStatus();
  const std::unique_ptr<TlsSession> failed = std::move(tls_);
  if (!failed->is_client() && !failed->begun()) co_return absl::CancelledError();
  if (timed_out_) co_return absl::DeadlineExceededError("the TLS handshake took too long");
  if (!there) co_return absl::CancelledError("the TLS handshake was broken off");
  const std::string why = absl::StrCat("TLS handshake: ", failed->why());
  if (failed->unverified()) co_return absl::FailedPreconditionError(why);
  if (failed->hears_http()) co_return absl::UnimplementedError(why);
  co_return absl::UnavailableError(why);
}

bool Stream::resumed() const { return tls_ && tls_->resumed(); }

std::string_view Stream::tls_error() const {
  return tls_ ? std::string_view(tls_->why()) : std::string_view();
}

Task<bool> Stream::WriteTls(std::string_view first, std::string_view second,
                            std::string_view third) {
  // Shared by all of the thread's connections: a record that has to wait for its peer is joined
  // anew, out of the same parts.
  thread_local std::array<char, TlsSession::kRecordBytes> scratch;
  Parts parts(first, second, third);
  while (!parts.empty()) {
    const TlsSession::Moved moved = tls_->Write(parts.NextRecord(scratch));
    if (moved.step == TlsSession::Step::kDone) {
      parts.Skip(moved.size);
      continue;
    }
    if (!Waits(moved.step)) co_return false;
    const bool again = co_await WaitFor(SideOf(moved.step));
    if (again) continue;
    tls_->Spoil();
    co_return false;
  }
  co_return true;
}

bool Stream::MayRead() const {
  if (readiness_.readable()) return true;
  return tls_ && tls_->pending();
}

bool Stream::ReadableTls() {
  const bool maybe = tls_->pending() || Peek();
  if (!tls_->established()) return maybe || tls_->begun();
  if (!maybe) return false;
  // Half a record may become a request: who drains waits for it.
  if (!tls_->Peek()) return tls_->pending();
  // OpenSSL has the bytes now: the socket will not wake who waits for them.
  readiness_.WakeReaders();
  return true;
}

bool Stream::ReadAwaiter::TryPlain() {
  ssize_t got = 0;
  do {
    got = ::recv(stream_.descriptor(), room_.data(), room_.size(), MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got > 0) {
    size_ = static_cast<std::size_t>(got);
    if (size_ < room_.size()) stream_.readiness_.NoteShortRead();
    return true;
  }
  if (got == 0) {
    stream_.ended_ = true;
    return true;
  }
  if (errno != EAGAIN && errno != EWOULDBLOCK) return true;
  stream_.readiness_.NoteEmpty();
  return false;
}

bool Stream::ReadAwaiter::TryTls() {
  const TlsSession::Moved moved = stream_.tls_->Read(room_);
  size_ = moved.size;
  side_ = SideOf(moved.step);
  if (moved.step == TlsSession::Step::kEnded) stream_.ended_ = true;
  return !Waits(moved.step);
}

void Stream::ReadAwaiter::Wait() {
  if (side_ == Side::kRead && stream_.readiness_.readable()) {
    return stream_.loop_.ready().Soon(*this);
  }
  stream_.readiness_.Wait(side_, *this);
}

// Who was told to stop waiting still gets what has come in. He may have been due already, and in no
// line that could be cancelled.
void Stream::ReadAwaiter::OnWake(Wake /*why*/) {
  if (!stream_.aborted_) {
    const bool cancelled = stream_.waits_cancelled_ != cancelled_;
    if (cancelled) stream_.readiness_.NoteReadable();
    const bool over = Try();
    if (!over && !cancelled) return Wait();
  }
  reader_.resume();
}

void Stream::Abort() {
  aborted_ = true;
  // The shutdown lasts: what is tried from now on fails, too.
  ::shutdown(descriptor(), SHUT_RDWR);
  CancelWait();
}

void Stream::CancelWait() {
  ++waits_cancelled_;
  readiness_.CancelWaits();
}

Task<void> Stream::EndWriting() {
  while (tls_) {
    const TlsSession::Step step = tls_->End();
    if (!Waits(step)) break;
    const bool again = co_await WaitFor(SideOf(step));
    if (!again) break;
  }
  ::shutdown(descriptor(), SHUT_WR);
}

void Stream::BreakOff() {
  if (tls_) tls_->Spoil();
  ::shutdown(descriptor(), SHUT_WR);
}

void Stream::OnDeadline() {
  timed_out_ = true;
  if (deadline_is_soft_) return CancelWait();
  Abort();
}

}  // namespace sluice::net
