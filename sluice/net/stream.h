// One TCP connection of a loop, with a deadline. Reads wait; writes try at once and wait only when
// the peer is slow, so that an answer usually costs one system call.
//
// The bytes may go through TLS, after AcceptTls() or ConnectTls(): nothing else changes for whoever
// reads and writes. Up to three small parts of a Write() leave as one record. A connection that
// does not speak TLS pays a branch for it.
//
// Reads ask the kernel only where the loop has heard that there is something (readiness.h). A
// stream that always has more lets the others have their turn every few reads.
//
// When the deadline passes, or Abort() is called, whatever waits ends as if the peer had gone, and
// so does everything after it; timed_out() tells which it was.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "sluice/base/time.h"
#include "sluice/net/address.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/read_buffer.h"
#include "sluice/net/readiness.h"
#include "sluice/net/socket.h"
#include "sluice/net/task.h"
#include "sluice/net/tls_context.h"
#include "sluice/net/tls_peer.h"

namespace sluice::net {

namespace internal {
class TlsSession;
}

class Stream : public Deadline {
 public:
  // Takes over a connected socket; with none, Connect() makes one.
  Stream(EventLoop& loop, Socket socket);
  // Over TLS the peer is told that it ends, if that needs no waiting, and unless something is
  // missing: after Abort(), BreakOff() or a Write() that failed it is not. Nobody waits in it any
  // more.
  ~Stream() override;

  [[nodiscard]] EventLoop& loop() { return loop_; }
  // For who has more to do with it than to read and write. -1: none yet.
  [[nodiscard]] int descriptor() const { return socket_.descriptor(); }
  [[nodiscard]] const tcp::endpoint& peer() const { return socket_.peer(); }
  [[nodiscard]] bool timed_out() const { return timed_out_; }
  // The peer has said, in order, that nothing more will come. Over TLS it must say so itself: an
  // end of the connection alone may be somebody's who cuts off the rest.
  [[nodiscard]] bool ended() const { return ended_ && !aborted_; }

  // Once, with TCP_NODELAY. False: it failed, or the deadline has passed.
  Task<bool> Connect(tcp::endpoint endpoint);
  // The same with the reason, an errno; 0: it is connected. ECANCELED after Abort().
  Task<int> TryConnect(tcp::endpoint endpoint);

  // The handshake, under the deadline that is set; before anything is read or written. When it
  // fails the stream is a plain one as before, and good for nothing but saying so.
  //   kCancelled           the client left before it had said anything, or we broke it off
  //   kDeadlineExceeded    it took too long
  //   kFailedPrecondition  the server is not who it should be: why, in OpenSSL's words
  //   kUnimplemented       the client speaks HTTP without TLS
  //   kUnavailable         anything else: the peer left, or there is no common ground
  Task<absl::Status> AcceptTls(const TlsServerContext& context);
  Task<absl::Status> ConnectTls(std::shared_ptr<TlsPeer> peer);
  [[nodiscard]] bool secure() const { return tls_ != nullptr; }
  // By a ticket of a connection before.
  [[nodiscard]] bool resumed() const;
  // Why TLS broke off after the handshake, in words for the log; empty unless it did.
  [[nodiscard]] std::string_view tls_error() const;

  class ReadAwaiter;
  // Waits for bytes and appends them to `buffer`, growing it up to `max_capacity`. 0: the peer
  // ended or broke the connection, the deadline has passed, or the buffer is full.
  [[nodiscard]] ReadAwaiter Read(ReadBuffer& buffer, std::size_t max_capacity);

  // Writes all of the parts, in order. False: the connection is broken or the deadline has passed.
  // The bytes stay where they are until then. The socket must be open.
  Task<bool> Write(std::string_view first, std::string_view second = {},
                   std::string_view third = {});

  // Whether bytes, or the end of the connection, can be read at once. For a connection that lies
  // idle: true means that the peer closed it, or said what nobody asked. What TLS says to itself
  // does not count, but half a record does: it may be anything. During a handshake: whether the
  // peer has begun with it. A system call.
  [[nodiscard]] bool Readable();
  // The opposite, as far as the loop has heard when it last asked the kernel: no system call for a
  // connection that lies idle.
  [[nodiscard]] bool Quiet() { return !MayRead() || !Readable(); }

  // Tells `watcher` once when the peer has left, while nobody reads: see Readiness. A client that
  // shuts down its sending side counts as gone, as it does in nginx. Bytes that come early stay
  // where they are and wake nobody. Costs no system call.
  void WatchHangup(HangupWatcher& watcher) { readiness_.WatchHangup(watcher); }
  void UnwatchHangup() { readiness_.UnwatchHangup(); }

  // Ends reading and writing in both directions, now. The socket stays open until destroyed.
  void Abort();

  // Ends what waits now as if the peer had gone. Bytes that have come in are still given out.
  void CancelWait();

  // Says that nothing more will be written. The peer may still send. Waits only for TLS, and then
  // only where the peer is slow.
  Task<void> EndWriting();
  // The same without a word of TLS, at once: the peer sees that something is missing.
  void BreakOff();

 protected:
  void OnDeadline() override;

  // While one lives, the deadline only ends the wait, so that the peer can still be told of it.
  class SoftDeadline {
   public:
    explicit SoftDeadline(Stream& stream) : stream_(stream) { stream_.deadline_is_soft_ = true; }
    SoftDeadline(const SoftDeadline&) = delete;
    SoftDeadline& operator=(const SoftDeadline&) = delete;
    ~SoftDeadline() { stream_.deadline_is_soft_ = false; }

   private:
    Stream& stream_;
  };

 private:
  class SideAwaiter;

  // Reads that are done one after the other before others have their turn.
  static constexpr unsigned kReadsAtOnce = 8;

  [[nodiscard]] bool MayRead() const;
  Task<bool> WritePlain(std::string_view first, std::string_view second, std::string_view third);
  Task<bool> WriteTls(std::string_view first, std::string_view second, std::string_view third);
  Task<absl::Status> Handshake();
  // For TLS. True: try again, which may find that there is nothing yet.
  Task<bool> WaitFor(Side side);
  [[nodiscard]] bool Peek();
  [[nodiscard]] bool ReadableTls();
  void Watch(bool to_write);

  EventLoop& loop_;
  Socket socket_;
  Readiness readiness_;
  bool timed_out_ = false;
  bool deadline_is_soft_ = false;
  bool aborted_ = false;
  bool ended_ = false;
  std::uint8_t reads_left_ = kReadsAtOnce;
  unsigned waits_cancelled_ = 0;
  std::unique_ptr<internal::TlsSession> tls_;  // null: plain
};

class Stream::ReadAwaiter final : private Waiter {
 public:
  ReadAwaiter(Stream& stream, ReadBuffer& buffer, std::size_t max_capacity)
      : stream_(stream), buffer_(buffer), room_(buffer.Room(max_capacity)) {}

  bool await_ready() {
    if (room_.empty() || stream_.aborted_) return true;
    if (!stream_.MayRead()) return false;
    if (stream_.reads_left_ == 0) {
      yields_ = true;
      return false;
    }
    --stream_.reads_left_;
    return Try();
  }
  void await_suspend(std::coroutine_handle<> reader) {
    reader_ = reader;
    cancelled_ = stream_.waits_cancelled_;
    stream_.reads_left_ = kReadsAtOnce;
    if (yields_) return stream_.loop_.ready().Soon(*this);
    Wait();
  }
  std::size_t await_resume() {
    if (size_ > 0) buffer_.Commit(size_);
    return size_;
  }

 private:
  // True: there are bytes, or it is over.
  bool Try() {
    if (stream_.tls_) [[unlikely]]
      return TryTls();
    return TryPlain();
  }
  bool TryPlain();
  bool TryTls();
  void Wait();
  void OnWake(Wake why) override;

  Stream& stream_;
  ReadBuffer& buffer_;
  std::span<char> room_;
  std::size_t size_ = 0;
  Side side_ = Side::kRead;  // TLS may have to write first
  bool yields_ = false;
  unsigned cancelled_ = 0;  // waits of the stream when this one began
  std::coroutine_handle<> reader_;
};

inline Stream::ReadAwaiter Stream::Read(ReadBuffer& buffer, std::size_t max_capacity) {
  return {*this, buffer, max_capacity};
}

}  // namespace sluice::net
