// The bytes of a connection that have arrived and are not used up.
//
//   |  used  |    unread    |    room    |
//            ^ data()       ^ Room()
//
// Grows by doubling up to the bound that is asked for, whenever what came in filled it: an idle
// connection holds little, and a long body is soon read in large pieces.
// Views into it end with Room() that has to move, and with Consume() of what they show.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace sluice::net {

class ReadBuffer {
 public:
  explicit ReadBuffer(std::size_t capacity)
      : bytes_(std::make_unique_for_overwrite<char[]>(capacity)), capacity_(capacity) {}

  [[nodiscard]] bool empty() const { return begin_ == end_; }
  [[nodiscard]] std::size_t size() const { return end_ - begin_; }
  [[nodiscard]] char* data() { return bytes_.get() + begin_; }
  [[nodiscard]] std::string_view view() const { return {bytes_.get() + begin_, size()}; }

  // Room for at least one byte, unless the unread bytes have reached `max_capacity`: then empty.
  [[nodiscard]] std::span<char> Room(std::size_t max_capacity) {
    if (end_ == capacity_ || filled_) MakeRoom(max_capacity);
    return {bytes_.get() + end_, capacity_ - end_};
  }
  // `size` bytes were written into the room.
  void Commit(std::size_t size) {
    assert(size <= capacity_ - end_);
    end_ += size;
    filled_ = filled_ || end_ == capacity_;
  }
  void Consume(std::size_t size) {
    assert(size <= this->size());
    begin_ += size;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  void Clear() { begin_ = end_ = 0; }

  // Gives back what is beyond `capacity`, if nothing is unread.
  void Shrink(std::size_t capacity) {
    filled_ = false;
    if (!empty() || capacity_ <= capacity) return;
    bytes_ = std::make_unique_for_overwrite<char[]>(capacity);
    capacity_ = capacity;
    begin_ = end_ = 0;
  }

 private:
  void MakeRoom(std::size_t max_capacity) {
    const bool grow = capacity_ < max_capacity && (begin_ == 0 || filled_);
    filled_ = false;
    if (!grow) {
      std::memmove(bytes_.get(), data(), size());
    } else {
      const std::size_t capacity = std::min(max_capacity, capacity_ * 2);
      auto bytes = std::make_unique_for_overwrite<char[]>(capacity);
      std::memcpy(bytes.get(), data(), size());
      bytes_ = std::move(bytes);
      capacity_ = capacity;
    }
    end_ -= begin_;
    begin_ = 0;
  }

  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_;
  bool filled_ = false;  // since it last grew
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace sluice::net
