#include "sluice/base/placed_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace sluice {
namespace {

struct Thing {
  int instant = 0;
  std::size_t place = 0;
};
using Heap = PlacedHeap<Thing, &Thing::instant, &Thing::place>;

TEST(PlacedHeapTest, TheEarliestIsFirstWhateverLeavesFromWherever) {
  std::mt19937 random(7);
  std::vector<Thing> things(200);
  std::vector<Thing*> in;
  std::vector<Thing*> out;
  for (Thing& thing : things) out.push_back(&thing);
  Heap heap;
  for (int step = 0; step < 20'000; ++step) {
    std::vector<Thing*>& from = random() % 2 == 0 || in.empty() ? out : in;
    if (from.empty()) continue;
    std::swap(from[random() % from.size()], from.back());
    Thing& thing = *from.back();
    from.pop_back();
    if (&from == &out) {
      thing.instant = static_cast<int>(random() % 50);
      heap.Add(thing);
      in.push_back(&thing);
    } else {
      heap.Remove(thing);
      out.push_back(&thing);
    }
    ASSERT_EQ(heap.empty(), in.empty());
    ASSERT_EQ(heap.all().size(), in.size());
    if (in.empty()) continue;
    const auto earlier = [](const Thing* a, const Thing* b) { return a->instant < b->instant; };
    ASSERT_EQ(heap.first().instant, (*std::min_element(in.begin(), in.end(), earlier))->instant);
  }
}

}  // namespace
}  // namespace sluice
