#include "sluice/net/stream.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <utility>

namespace sluice::net {
namespace {

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
    auto left = static_cast<std::size_t>(sent);
    while (at_ < count_ && left >= parts_[at_].iov_len) left -= parts_[at_++].iov_len;
    if (at_ < count_) {
      parts_[at_].iov_base = static_cast<char*>(parts_[at_].iov_base) + left;
      parts_[at_].iov_len -= left;
    }
    return 0;
  }

 private:
  std::array<iovec, 3> parts_{};
  std::size_t count_ = 0;
  std::size_t at_ = 0;
};

}  // namespace

Stream::Stream(EventLoop& loop, Socket socket)
    : Deadline(loop.deadlines()), loop_(loop), socket_(std::move(socket)) {
  error_code ignored;
  if (socket_.is_open()) socket_.set_option(tcp::no_delay(true), ignored);
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
  char byte = 0;
  const ssize_t got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
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
  socket_.cancel(ignored);
}

void Stream::EndWriting() {
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

void Stream::OnDeadline() {
  timed_out_ = true;
  if (deadline_is_soft_) return CancelWait();
  Abort();
}

}  // namespace sluice::net
