// Things with a deadline, the next one first. Each knows its place, so that one that was answered
// can leave from wherever it is: a few steps of a binary heap, and no allocation once it has grown.
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

#include "sluice/base/time.h"

namespace sluice::redis {

// T has `Time deadline` and `std::size_t place`, which is the heap's while it is in it.
template <class T>
class DeadlineHeap {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  [[nodiscard]] T& next() const { return *heap_.front(); }

  void Add(T& thing) {
    thing.place = heap_.size();
    heap_.push_back(&thing);
    Rise(thing.place);
  }

  void Remove(T& thing) {
    const std::size_t place = thing.place;
    assert(place < heap_.size() && heap_[place] == &thing);
    T* const last = heap_.back();
    heap_.pop_back();
    if (last == &thing) return;
    Put(place, last);
    Rise(place);
    Sink(last->place);
  }

 private:
  void Put(std::size_t place, T* thing) {
    heap_[place] = thing;
    thing->place = place;
  }
  void Swap(std::size_t a, std::size_t b) {
    T* const before = heap_[a];
    Put(a, heap_[b]);
    Put(b, before);
  }
  [[nodiscard]] bool Before(std::size_t a, std::size_t b) const {
    return heap_[a]->deadline < heap_[b]->deadline;
  }
  void Rise(std::size_t place) {
    while (place > 0 && Before(place, (place - 1) / 2)) {
      Swap(place, (place - 1) / 2);
      place = (place - 1) / 2;
    }
  }
  void Sink(std::size_t place) {
    for (;;) {
      std::size_t least = place;
      for (const std::size_t child : {2 * place + 1, 2 * place + 2}) {
        if (child < heap_.size() && Before(child, least)) least = child;
      }
      if (least == place) return;
      Swap(place, least);
      place = least;
    }
  }

  std::vector<T*> heap_;
};

}  // namespace sluice::redis
