// Things with an instant, the earliest first. Each knows its place, so that one can leave from
// wherever it is: a few steps of a binary heap, and no allocation once it has grown.
//
//   struct Wait { Time deadline; std::size_t place; };
//   PlacedHeap<Wait, &Wait::deadline, &Wait::place> waits;
#pragma once

#include <cassert>
#include <cstddef>
#include <vector>

namespace sluice {

// Owns nothing. A thing's place is the heap's while it is in it, and its instant stays as it is.
template <class T, auto kInstant, auto kPlace>
class PlacedHeap {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] T& first() const { return *heap_.front(); }

  void Add(T& thing) {
    heap_.push_back(&thing);
    Rise(heap_.size() - 1);
  }

  void Remove(T& thing) {
    const std::size_t place = thing.*kPlace;
    assert(place < heap_.size() && heap_[place] == &thing);
    T* const last = heap_.back();
    heap_.pop_back();
    if (last == &thing) return;
    Put(place, *last);
    Rise(place);
    Sink(last->*kPlace);
  }

  // In no order.
  [[nodiscard]] const std::vector<T*>& all() const { return heap_; }

 private:
  void Put(std::size_t place, T& thing) {
    heap_[place] = &thing;
    thing.*kPlace = place;
  }
  void Rise(std::size_t place) {
    T& thing = *heap_[place];
    while (place > 0 && thing.*kInstant < heap_[(place - 1) / 2]->*kInstant) {
      Put(place, *heap_[(place - 1) / 2]);
      place = (place - 1) / 2;
    }
    Put(place, thing);
  }
  void Sink(std::size_t place) {
    T& thing = *heap_[place];
    for (;;) {
      std::size_t child = 2 * place + 1;
      if (child >= heap_.size()) break;
      const bool right =
          child + 1 < heap_.size() && heap_[child + 1]->*kInstant < heap_[child]->*kInstant;
      child += right ? 1 : 0;
      if (thing.*kInstant <= heap_[child]->*kInstant) break;
      Put(place, *heap_[child]);
      place = child;
    }
    Put(place, thing);
  }

  std::vector<T*> heap_;
};

}  // namespace sluice
