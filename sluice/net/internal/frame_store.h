// Memory for coroutine frames: freed frames are kept by thread and size, so that a loop in steady
// state allocates nothing.
//
// Sizes are rounded up to steps of 128 bytes; a frame may be freed on another thread than it was
// taken on. Bound: 256 KiB for each of 31 sizes and thread; larger frames are not kept.
#pragma once

#include <array>
#include <cstddef>
#include <new>

namespace sluice::net::internal {

class FrameStore {
 public:
  static constexpr std::size_t kStep = 128;
  static constexpr std::size_t kClasses = 32;                         // larger frames are not kept
  static constexpr std::size_t kKeptBytes = std::size_t{256} * 1024;  // of each class

  FrameStore() = default;
  FrameStore(const FrameStore&) = delete;
  FrameStore& operator=(const FrameStore&) = delete;
  ~FrameStore() {
    for (List& list : lists_) {
      while (list.head != nullptr) ::operator delete(Pop(list));
    }
  }

  static void* Allocate(std::size_t size) { return OfThread().Take((size + kStep - 1) / kStep); }
  static void Free(void* frame, std::size_t size) noexcept {
    OfThread().Keep(frame, (size + kStep - 1) / kStep);
  }

 private:
  struct Node {
    Node* next;
  };
  struct List {
    Node* head = nullptr;
    std::size_t size = 0;
  };

  static FrameStore& OfThread() {
    thread_local FrameStore store;
    return store;
  }
  static void* Pop(List& list) noexcept {
    Node* node = list.head;
    list.head = node->next;
    --list.size;
    return node;
  }
  void* Take(std::size_t steps) {
    if (steps < kClasses && lists_[steps].head != nullptr) return Pop(lists_[steps]);
    const std::size_t bytes = steps * kStep;
    return ::operator new(bytes);
  }
  void Keep(void* frame, [[maybe_unused]] std::size_t steps) noexcept {
#ifndef __SANITIZE_ADDRESS__  // which could not see a use after the end
    if (steps < kClasses && lists_[steps].size * steps * kStep < kKeptBytes) {
      lists_[steps].head = ::new (frame) Node{lists_[steps].head};
      ++lists_[steps].size;
      return;
    }
#endif
    ::operator delete(frame);
  }

  std::array<List, kClasses> lists_;
};

}  // namespace sluice::net::internal
