// What a loop has heard of one socket, so that nobody asks the kernel in vain.
//
// The kernel tells once of each change (edge-triggered, one registration in a socket's life), and
// what it has told is kept here:
//
//   readable   from the event on, until a read finds less than it has room for. A read that fills
//              its room leaves it so: there may be more, and nothing would tell of that.
//   hung up    for good: the peer has ended its sending, or the connection is broken. A read tells
//              which of the two, after all bytes that came before; so it stays readable.
//
// Whether one can write is not kept: a write tries, and who finds no room waits here.
// Cost: nothing a read or a write but a few instructions. For one thread.
#pragma once

#include <cstdint>

#include "sluice/net/ready_set.h"

namespace sluice::net {

enum class Side : std::uint8_t { kRead, kWrite };

class Readiness;

// Is told, once, that a peer has left while nobody reads from it.
class HangupWatcher : private Waiter {
 public:
  virtual void OnHangup() = 0;

 protected:
  ~HangupWatcher() override;

 private:
  friend class Readiness;
  void OnWake(Wake why) final;

  Readiness* watched_ = nullptr;  // null: nobody
};

class Readiness final : private ReadySet::Member {
 public:
  explicit Readiness(ReadySet& set) : set_(set) {}
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;
  // Nobody waits here any more.
  ~Readiness();

  // From here on, until `descriptor` is closed, which no copy of it may outlive. Once. `to_write`:
  // somebody will wait for that first. False: the kernel does not let it be watched; then reads
  // are never kept waiting.
  [[nodiscard]] bool Watch(int descriptor, bool to_write = false);

  // A read may find something: bytes, the end, or an error.
  [[nodiscard]] bool readable() const { return readable_; }
  [[nodiscard]] bool hung_up() const { return hung_up_; }

  // A read has found less than it had room for, but something. What is out of band cuts a read
  // short as well, so where it was seen once this says nothing.
  void NoteShortRead() { readable_ = hung_up_ || urgent_; }
  // A read has found nothing (EAGAIN).
  void NoteEmpty() { readable_ = false; }
  // Somebody has looked: a read finds something, though nothing was heard of it yet.
  void NoteReadable() { readable_ = true; }

  // As in ReadySet::Stand(). Spurious wakes happen.
  void Wait(Side side, Waiter& waiter);
  void WakeReaders() { set_.WakeAll(readers_, Wake::kReady); }
  void CancelWaits();

  // `watcher` is told soon, never from inside this call, also of what happened before. At most one
  // at a time. Destroyed, he is taken off.
  void WatchHangup(HangupWatcher& watcher);
  void UnwatchHangup();

 private:
  friend class HangupWatcher;
  void OnReady(std::uint32_t events) override;

  ReadySet& set_;
  Line readers_;
  Line writers_;
  HangupWatcher* watcher_ = nullptr;
  int descriptor_ = -1;
  bool readable_ = true;
  bool hung_up_ = false;
  bool urgent_ = false;
  bool tells_of_room_ = false;  // the kernel, too, when one can write again
};

}  // namespace sluice::net
