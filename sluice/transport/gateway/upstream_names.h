// Looks up the names of upstreams again while the gateway runs, since what a name stands for
// changes.
//
//   every `every`, and a second or so after a failure ─> resolve ─┬─ other addresses: publish
//                                                                 `─ an error: the old ones stay
//
// Only names are looked up, never addresses. An error is told once, and so is its end. The same
// addresses in another order are no news, so that servers that take turns in the order do not make
// connections change.
//
// UpstreamNames decides and is driven by a caller; NameWatch is the thread that drives it, for
// looking up blocks. Thread-safety: all functions from any thread, but Look() from one at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/base/steady_now.h"
#include "sluice/base/time.h"
#include "sluice/transport/gateway/name_lookup.h"
#include "sluice/transport/gateway/upstream.h"

namespace sluice::gateway {

class UpstreamNames {
 public:
  // The addresses are others now. Called with a lock held: it must not call back.
  using Publish =
      std::function<void(const std::shared_ptr<Upstream>&, std::shared_ptr<const Endpoints>)>;
  struct Name {
    std::shared_ptr<Upstream> upstream;
    std::shared_ptr<const Endpoints> found;  // just now; null: it is watched already
  };
  // How soon a name may be looked up again after a failure.
  static constexpr Duration kSoonest = std::chrono::seconds{1};

  // `clock` tells what time it is, from any thread.
  UpstreamNames(Resolver resolve, Publish publish, std::function<Time()> clock = SteadyNow)
      : resolve_(std::move(resolve)), publish_(std::move(publish)), clock_(std::move(clock)) {}

  // Watches these, and no others, from now on.
  void Replace(const std::vector<Name>& names, Duration every);

  // Looks up what is due, one after the other, and tells how long to wait for the next: kSoonest at
  // most, Duration::max() where there are no names at all. Between a Replace() that dropped a name
  // and an answer that comes later, the Replace() wins.
  Duration Look();

  // Nothing is published any more, and no further name looked up.
  void Stop();

 private:
  struct Watched {
    std::shared_ptr<Upstream> upstream;
    std::shared_ptr<const Endpoints> endpoints;
    Time looked_at;
    bool failing = false;
  };

  [[nodiscard]] bool IsDue(const Watched& name, Time now) const;
  void Take(const std::shared_ptr<Upstream>& upstream, const Endpoints* asked,
            absl::StatusOr<Endpoints> found);
  [[nodiscard]] bool stopped() const;

  const Resolver resolve_;
  const Publish publish_;
  const std::function<Time()> clock_;
  mutable std::mutex mutex_;  // guards what follows; not held while a name is looked up
  std::vector<Watched> names_;
  Duration every_{0};
  bool stopped_ = false;
};

class NameWatch {
 public:
  // How long the end waits for a lookup that is under way.
  static constexpr Duration kPatience = std::chrono::seconds{1};

  NameWatch(Resolver resolve, UpstreamNames::Publish publish, Duration patience = kPatience);
  NameWatch(const NameWatch&) = delete;
  NameWatch& operator=(const NameWatch&) = delete;
  // Nothing is published after it. A lookup that hangs is waited for no longer than `patience`, so
  // that a name server that is gone does not delay the end of the process; its thread, and with it
  // the resolver, is left behind then.
  ~NameWatch();

  void Replace(const std::vector<UpstreamNames::Name>& names, Duration every);

 private:
  // What the thread uses, which may outlive the watch.
  struct Shared {
    Shared(Resolver resolve, UpstreamNames::Publish publish)
        : names(std::move(resolve), std::move(publish)) {}

    UpstreamNames names;
    std::mutex mutex;                // guards what follows
    std::condition_variable wake;    // for the thread
    std::condition_variable looked;  // for who waits until it no longer looks
    bool replaced = false;
    bool stopping = false;
    bool looking = false;
  };
  static void Run(const std::shared_ptr<Shared>& shared);

  const Duration patience_;
  const std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace sluice::gateway
