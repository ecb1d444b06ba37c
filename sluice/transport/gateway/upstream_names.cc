#include "sluice/transport/gateway/upstream_names.h"

#include <algorithm>

#include "sluice/base/log.h"
#include "sluice/base/steady_now.h"

namespace sluice::gateway {
namespace {

bool SameAddresses(Endpoints one, Endpoints other) {
  std::sort(one.begin(), one.end());
  std::sort(other.begin(), other.end());
  return one == other;
}

}  // namespace

void UpstreamNames::Replace(const std::vector<Name>& names, Duration every) {
  const Time now = clock_();
  const std::lock_guard lock(mutex_);
  std::vector<Watched> next;
  for (const Name& name : names) {
    if (net::IsLiteral(name.upstream->address)) continue;
    if (name.found) {
      next.push_back({.upstream = name.upstream, .endpoints = name.found, .looked_at = now});
      continue;
    }
    for (Watched& watched : names_) {
      if (watched.upstream == name.upstream) next.push_back(std::move(watched));
    }
  }
  names_ = std::move(next);
  every_ = every;
}

bool UpstreamNames::IsDue(const Watched& name, Time now) const {
  const Duration age = now - name.looked_at;
  return age >= every_ ||
         (age >= kSoonest && name.upstream->failed_lately.load(std::memory_order_relaxed));
}

Duration UpstreamNames::Look() {
  std::vector<Watched> due;
  Duration wait = Duration::max();
  {
    const Time now = clock_();
    const std::lock_guard lock(mutex_);
    if (!names_.empty()) wait = std::min(every_, kSoonest);
    for (const Watched& name : names_) {
      if (IsDue(name, now)) due.push_back(name);
    }
  }
  for (const Watched& name : due) {
    if (stopped()) break;
    name.upstream->failed_lately.store(false, std::memory_order_relaxed);
    Take(name.upstream, name.endpoints.get(), resolve_(name.upstream->address));
  }
  return wait;
}

bool UpstreamNames::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

// `asked`: the addresses that were known when the question was asked. Where they are others by now
// the name was dropped and came back, with an answer of its own.
void UpstreamNames::Take(const std::shared_ptr<Upstream>& upstream, const Endpoints* asked,
                         absl::StatusOr<Endpoints> found) {
  // From its end, so that a lookup that takes longer than `every` is not made without a pause.
  const Time now = clock_();
  const std::lock_guard lock(mutex_);
  const auto name = std::find_if(names_.begin(), names_.end(), [&](const Watched& watched) {
    return watched.upstream == upstream && watched.endpoints.get() == asked;
  });
  if (stopped_ || name == names_.end()) return;
  name->looked_at = now;
  if (!found.ok() || found->empty()) {
    if (std::exchange(name->failing, true)) return;
    log::Warning("upstream's name not found; its old addresses are kept",
                 {{"upstream", upstream->name}, {"why", std::string(found.status().message())}});
    return;
  }
  if (std::exchange(name->failing, false)) {
    log::Info("upstream's name found again", {{"upstream", upstream->name}});
  }
  if (SameAddresses(*found, *name->endpoints)) return;
  name->endpoints = std::make_shared<const Endpoints>(*std::move(found));
  log::Info("upstream's name stands for other addresses",
            {{"upstream", upstream->name},
             {"addresses", name->endpoints->size()},
             {"first", net::ToString(name->endpoints->front())}});
  publish_(upstream, name->endpoints);
}

void UpstreamNames::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
}

NameWatch::NameWatch(Resolver resolve, UpstreamNames::Publish publish, Duration patience)
    : patience_(patience),
      shared_(std::make_shared<Shared>(std::move(resolve), std::move(publish))),
      thread_([shared = shared_] { Run(shared); }) {}

NameWatch::~NameWatch() {
  shared_->names.Stop();
  bool hangs = false;
  {
    std::unique_lock lock(shared_->mutex);
    shared_->stopping = true;
    shared_->wake.notify_all();
    hangs = !shared_->looked.wait_for(lock, patience_, [this] { return !shared_->looking; });
  }
  if (hangs) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void NameWatch::Replace(const std::vector<UpstreamNames::Name>& names, Duration every) {
  shared_->names.Replace(names, every);
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->replaced = true;
  }
  shared_->wake.notify_all();
}

void NameWatch::Run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  while (!shared->stopping) {
    shared->replaced = false;
    shared->looking = true;
    lock.unlock();
    const Duration wait = shared->names.Look();
    lock.lock();
    shared->looking = false;
    shared->looked.notify_all();
    const auto news = [&shared] { return shared->stopping || shared->replaced; };
    if (wait == Duration::max()) {
      shared->wake.wait(lock, news);
    } else {
      shared->wake.wait_for(lock, wait, news);
    }
  }
}

}  // namespace sluice::gateway
