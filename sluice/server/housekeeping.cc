#include "sluice/server/housekeeping.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace sluice {

Housekeeping::Housekeeping(std::vector<Chore> chores)
    : chores_(std::move(chores)), thread_([this] { Run(); }) {}

Housekeeping::~Housekeeping() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Housekeeping::Run() {
  using Steady = std::chrono::steady_clock;
  std::vector<Steady::time_point> due;
  for (const Chore& chore : chores_) due.push_back(Steady::now() + chore.every);
  std::unique_lock lock(mutex_);
  while (!stopping_ && !due.empty()) {
    const auto next = std::min_element(due.begin(), due.end());
    if (wake_.wait_until(lock, *next, [this] { return stopping_; })) return;
    const Chore& chore = chores_[static_cast<std::size_t>(next - due.begin())];
    lock.unlock();
    chore.work();
    lock.lock();
    // From its end, so that a chore that takes longer than its interval is not run without a pause.
    *next = Steady::now() + chore.every;
  }
}

}  // namespace sluice
