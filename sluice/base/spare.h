// Objects that many need for a while each, and that are dear to make anew: buffers above all. Who
// is done gives the object back as it is, with the memory that it has grown to, and the next one
// takes it; the last given back goes first, so that it is still in the processor's cache.
//
//   Spare<std::string> text;      // somebody's string: clear it
//   text.Take();  text->...;  text.GiveBack();      // or let it end
//
// The stock is the thread's own. An object may be given back on another thread than it was taken
// on. Bound: kKept objects for each thread and type; more are destroyed.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace sluice {

template <class T>
class Spare {
 public:
  static constexpr std::size_t kKept = 64;

  Spare() = default;
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  ~Spare() { GiveBack(); }

  // Nothing is held yet. What is taken is as its last holder left it.
  void Take() {
    assert(object_ == nullptr);
    std::vector<std::unique_ptr<T>>& stock = Stock();
    if (stock.empty()) {
      object_ = std::make_unique<T>();
    } else {
      object_ = std::move(stock.back());
      stock.pop_back();
    }
  }

  // Does nothing where nothing is held.
  void GiveBack() {
    if (object_ == nullptr) return;
#ifdef __SANITIZE_ADDRESS__  // which could not see a use after the end
    object_.reset();
#else
    std::vector<std::unique_ptr<T>>& stock = Stock();
    if (stock.size() < kKept) {
      stock.push_back(std::move(object_));
    } else {
      object_.reset();
    }
#endif
  }

  [[nodiscard]] bool held() const { return object_ != nullptr; }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_.get(); }

 private:
  static std::vector<std::unique_ptr<T>>& Stock() {
    thread_local std::vector<std::unique_ptr<T>> stock = [] {
      std::vector<std::unique_ptr<T>> empty;
      empty.reserve(kKept);
      return empty;
    }();
    return stock;
  }

  std::unique_ptr<T> object_;
};

}  // namespace sluice
