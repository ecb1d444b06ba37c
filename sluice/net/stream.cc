#include "sluice/net/stream.h"

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

bool SocketReadable(int descriptor) {
  char byte = 0;
  const ssize_t got = ::recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

bool Waits(TlsSession::Step step) {
  return step == TlsSession::Step::kWantRead || step == TlsSession::Step::kWantWrite;
}

Socket::wait_type WaitOf(TlsSession::Step step) {
  return step == TlsSession::Step::kWantWrite ? Socket::wait_write : Socket::wait_read;
}

}  // namespace

Stream::Stream(EventLoop& loop, Socket socket)
    : Deadline(loop.deadlines()), loop_(loop), socket_(std::move(socket)) {
  error_code ignored;
  if (socket_.is_open()) socket_.set_option(tcp::no_delay(true), ignored);
}

Stream::~Stream() {
  if (tls_ && !aborted_) static_cast<void>(tls_->End());
}

Task<bool> Stream::Connect(tcp::endpoint endpoint) {
  error_code error;
  socket_.open(endpoint.protocol(), error);
  if (error) co_return false;
  socket_.set_option(tcp::no_delay(true), error);
  std::tie(error) = co_await Await<error_code>(
      [&](auto done) { socket_.async_connect(endpoint, std::move(done)); });
  co_return !error && !timed_out_;
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
    const int error = parts.SendSome(socket_.native_handle());
    if (error == 0 || error == EINTR) continue;
    if (error != EAGAIN && error != EWOULDBLOCK) co_return false;
    auto [failed] = co_await Await<error_code>(
        [&](auto done) { socket_.async_wait(Socket::wait_write, std::move(done)); });
    if (failed || timed_out_) co_return false;
  }
  co_return true;
}

bool Stream::Readable() {
  if (tls_) [[unlikely]]
    return ReadableTls();
  return SocketReadable(socket_.native_handle());
}

Task<bool> Stream::WaitFor(Socket::wait_type what) {
  const unsigned cancelled = waits_cancelled_;
  auto [failed] =
      co_await Await<error_code>([&](auto done) { socket_.async_wait(what, std::move(done)); });
  if (timed_out_ || aborted_ || waits_cancelled_ != cancelled) co_return false;
  // ReadableTls() woke the reader, and everybody else with it.
  co_return !failed || failed == asio::error::operation_aborted;
}

Task<absl::Status> Stream::AcceptTls(const TlsServerContext& context) {
  tls_ = std::make_unique<TlsSession>(context, socket_.native_handle());
  return Handshake();
}

Task<absl::Status> Stream::ConnectTls(std::shared_ptr<TlsPeer> peer) {
  tls_ = std::make_unique<TlsSession>(std::move(peer), socket_.native_handle());
  return Handshake();
}

Task<absl::Status> Stream::Handshake() {
  TlsSession::Step step = tls_->Handshake();
  bool there = true;
  while (there && Waits(step)) {
    there = co_await WaitFor(WaitOf(step));
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
    const bool again = co_await WaitFor(WaitOf(moved.step));
    if (again) continue;
    tls_->Spoil();
    co_return false;
  }
  co_return true;
}

bool Stream::ReadableTls() {
  const bool maybe = tls_->pending() || SocketReadable(socket_.native_handle());
  if (!tls_->established()) return maybe || tls_->begun();
  if (!maybe) return false;
  // Half a record may become a request: who drains waits for it.
  if (!tls_->Peek()) return tls_->pending();
  // OpenSSL has the bytes now: the socket will not wake who waits for them.
  error_code ignored;
  if (reading_) socket_.cancel(ignored);
  return true;
}

bool Stream::ReadAwaiter::ReadyTls() {
  const TlsSession& tls = *stream_.tls_;
  return (tls.pending() || !tls.drained()) && TryTls();
}

// True: there are bytes, or it is over.
bool Stream::ReadAwaiter::TryTls() {
  if (stream_.aborted_) return true;
  const TlsSession::Moved moved = stream_.tls_->Read(room_);
  size_ = moved.size;
  wait_ = WaitOf(moved.step);
  if (moved.step == TlsSession::Step::kEnded) stream_.ended_ = true;
  return !Waits(moved.step);
}

void Stream::ReadAwaiter::WaitTls() {
  stream_.reading_ = true;
  stream_.socket_.async_wait(wait_, Tried{this});
}

// Who was told to stop waiting still gets what has come in.
void Stream::ReadAwaiter::OnTls(const error_code& error) {
  stream_.reading_ = false;
  const bool over = TryTls();
  if (!over && !error) return WaitTls();
  waiter_.resume();
}

void Stream::Abort() {
  error_code ignored;
  aborted_ = true;
  // The shutdown lasts: what is tried from now on fails, too. A pending connect needs the cancel.
  socket_.shutdown(Socket::shutdown_both, ignored);
  socket_.cancel(ignored);
}

void Stream::CancelWait() {
  error_code ignored;
  ++waits_cancelled_;
  socket_.cancel(ignored);
}

Task<void> Stream::EndWriting() {
  while (tls_) {
    const TlsSession::Step step = tls_->End();
    if (!Waits(step)) break;
    const bool again = co_await WaitFor(WaitOf(step));
    if (!again) break;
  }
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

void Stream::BreakOff() {
  if (tls_) tls_->Spoil();
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

void Stream::OnDeadline() {
  timed_out_ = true;
  if (deadline_is_soft_) return CancelWait();
  Abort();
}

}  // namespace sluice::net
