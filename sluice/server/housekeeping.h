// A thread for what must happen now and then and may take its time: the wall clock's offset once a
// second, the snapshot as often as the configuration says.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "sluice/base/time.h"

namespace sluice {

class Housekeeping {
 public:
  struct Chore {
    Duration every{0};  // > 0
    std::function<void()> work;
  };

  // The first time comes one interval from now. Chores run one at a time.
  explicit Housekeeping(std::vector<Chore> chores);
  // Waits for the chore that is running.
  ~Housekeeping();
  Housekeeping(const Housekeeping&) = delete;
  Housekeeping& operator=(const Housekeeping&) = delete;

 private:
  void Run();

  const std::vector<Chore> chores_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sluice
