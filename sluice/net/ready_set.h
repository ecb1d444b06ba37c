// What the kernel says of a loop's descriptors (epoll), and who is waiting for it.
//
//   Wait():  epoll_wait -> each Member writes down what it hears -> whoever is due is woken, in
//   order
//
// Nothing runs until a whole batch is written down. So who is woken may close and destroy anything:
// no event of the batch is left that could name it, and whatever came in the same moment is known
// to all. Who becomes due meanwhile has to wait for the next turn, which the kernel is asked
// before.
//
// Cost: one system call a turn. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::net {

class ReadySet;

enum class Wake : std::uint8_t {
  kReady,      // maybe: look again
  kCancelled,  // wait no longer; what was waited for may have come all the same
};

// Somebody who waits, in one line at a time. May be destroyed at any time, and is woken no more.
class Waiter {
 public:
  Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

 protected:
  virtual ~Waiter() {
    if (link_ != nullptr) Leave();
  }
  // It stands in no line any more; it may destroy itself and others.
  virtual void OnWake(Wake why) = 0;

 private:
  friend class ReadySet;
  friend class Line;

  // He stands in a line.
  void Leave();

  Waiter* next_ = nullptr;
  Waiter** link_ = nullptr;  // what points here; null outside of lines
  Waiter*** end_ = nullptr;  // of its line
  std::size_t* counted_ = nullptr;
  std::uint32_t turn_ = 0;  // in which it became due
  Wake why_ = Wake::kReady;
};

// Those who wait for one thing, in order. Outlives whoever stands in it.
class Line {
 public:
  Line() = default;
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  [[nodiscard]] bool empty() const { return first_ == nullptr; }

 private:
  friend class ReadySet;

  void Add(Waiter& waiter);

  Waiter* first_ = nullptr;
  Waiter** end_ = &first_;  // where the next one is hung
};

class ReadySet {
 public:
  // A descriptor of the set.
  class Member {
   public:
    // Writes down `events`, as in epoll(7); wakes nobody but by WakeAll() and Soon().
    virtual void OnReady(std::uint32_t events) = 0;

   protected:
    ~Member() = default;
  };

  ReadySet();
  ReadySet(const ReadySet&) = delete;
  ReadySet& operator=(const ReadySet&) = delete;
  ~ReadySet();

  // Until the descriptor is closed; no copy of it may outlive that. `member` lives as long. False:
  // the kernel does not let it be watched.
  [[nodiscard]] bool Add(int descriptor, std::uint32_t events, Member& member);
  void Change(int descriptor, std::uint32_t events, Member& member);

  // `waiter` stands in `line`, and the loop has work as long as he does.
  void Stand(Waiter& waiter, Line& line);
  // Wakes all of the line, soon; never from inside this call.
  void WakeAll(Line& line, Wake why);
  // The same for one, wherever he stands.
  void Soon(Waiter& waiter, Wake why = Wake::kReady);
  // He waits no more.
  void Dismiss(Waiter& waiter) {
    if (waiter.link_ != nullptr) waiter.Leave();
  }

  // Somebody stands in a line.
  [[nodiscard]] bool awaited() const { return waiting_ > 0; }
  [[nodiscard]] bool due() const { return !due_.empty(); }

  // One turn: waits for the kernel, but not while somebody is due. Whether anything happened.
  bool Wait(bool may_wait);

 private:
  static constexpr std::size_t kBatch = 128;

  const int epoll_;
  std::size_t waiting_ = 0;
  std::uint32_t turn_ = 0;
  Line due_;
};

}  // namespace sluice::net
