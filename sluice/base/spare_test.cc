#include "sluice/base/spare.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>

namespace sluice {
namespace {

// Each test has a type of its own, and with it a stock.
template <int kTest>
struct Thing {
  int number = 0;
};

TEST(SpareTest, HoldsNothingUntilItIsAsked) {
  Spare<Thing<0>> spare;
  EXPECT_FALSE(spare.held());
  spare.Take();
  EXPECT_TRUE(spare.held());
  spare.GiveBack();
  EXPECT_FALSE(spare.held());
  spare.GiveBack();
}

TEST(SpareTest, TwoHoldersNeverShare) {
  Spare<Thing<1>> one;
  Spare<Thing<1>> other;
  one.Take();
  other.Take();
  EXPECT_NE(&*one, &*other);
}

#ifndef __SANITIZE_ADDRESS__
TEST(SpareTest, TheLastGivenBackIsTakenFirstAndIsAsItWasLeft) {
  Spare<Thing<2>> one;
  Spare<Thing<2>> other;
  one.Take();
  other.Take();
  one->number = 1;
  other->number = 2;
  one.GiveBack();
  other.GiveBack();
  Spare<Thing<2>> next;
  next.Take();
  EXPECT_EQ(next->number, 2);
}

TEST(SpareTest, WhatEndsGivesBack) {
  {
    Spare<Thing<3>> spare;
    spare.Take();
    spare->number = 7;
  }
  Spare<Thing<3>> next;
  next.Take();
  EXPECT_EQ(next->number, 7);
}

struct Counted {
  static inline int alive = 0;
  Counted() { ++alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --alive; }
};

TEST(SpareTest, NoMoreAreKeptThanTheBound) {
  {
    std::array<Spare<Counted>, Spare<Counted>::kKept + 10> many;
    for (Spare<Counted>& spare : many) spare.Take();
  }
  EXPECT_EQ(Counted::alive, static_cast<int>(Spare<Counted>::kKept));
}
#endif

TEST(SpareTest, MayBeGivenBackOnAnotherThread) {
  Spare<Thing<4>> spare;
  spare.Take();
  std::thread([&] { spare.GiveBack(); }).join();
  EXPECT_FALSE(spare.held());
}

}  // namespace
}  // namespace sluice
