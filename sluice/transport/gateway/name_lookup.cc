#include "sluice/transport/gateway/name_lookup.h"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace sluice::gateway {
namespace {

// What the threads use, which may outlive the call.
struct Shared {
  explicit Shared(std::size_t count) : found(count) {}

  void Put(std::size_t name, absl::StatusOr<Endpoints> endpoints) {
    {
      const std::lock_guard lock(mutex);
      failed |= !endpoints.ok();
      --missing;
      found[name] = std::move(endpoints);
    }
    news.notify_all();
  }

  std::mutex mutex;  // guards what follows
  std::condition_variable_any news;
  std::vector<std::optional<absl::StatusOr<Endpoints>>> found;
  std::size_t missing = found.size();
  bool failed = false;
};

struct Asked {
  std::size_t name;
  std::thread thread;
};

// A thread for each name that is not an address.
std::vector<Asked> Ask(const std::vector<net::HostPort>& names, const Resolver& resolve,
                       const std::shared_ptr<Shared>& shared) {
  std::vector<Asked> asked;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (net::IsLiteral(names[i])) {
      shared->Put(i, resolve(names[i]));
      continue;
    }
    try {
      asked.push_back({.name = i, .thread = std::thread([shared, resolve, i, name = names[i]] {
                                    shared->Put(i, resolve(name));
                                  })});
    } catch (const std::system_error& error) {
      shared->Put(i, absl::ResourceExhaustedError(
                         absl::StrCat("no thread to look up `", names[i].host, "`")));
    }
  }
  return asked;
}

absl::Status WhyNot(const Shared& shared, const std::vector<net::HostPort>& names, Duration within,
                    bool stopped) {
  for (const auto& found : shared.found) {
    if (found && !found->ok()) return found->status();
  }
  if (stopped) return absl::CancelledError("the lookup of upstreams was given up");
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (shared.found[i]) continue;
    const auto seconds = std::chrono::duration<double>(within).count();
    return absl::DeadlineExceededError(
        absl::StrCat("`", names[i].host, "` could not be looked up within ", seconds, " s"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Endpoints>> LookUp(const std::vector<net::HostPort>& names,
                                              const Resolver& resolve, Duration within,
                                              std::stop_token stop) {
  const auto shared = std::make_shared<Shared>(names.size());
  std::vector<Asked> asked = Ask(names, resolve, shared);
  std::unique_lock lock(shared->mutex);
  shared->news.wait_for(lock, stop, within, [&] { return shared->missing == 0 || shared->failed; });
  const absl::Status status = WhyNot(*shared, names, within, stop.stop_requested());
  std::vector<Endpoints> endpoints;
  for (const auto& found : shared->found) {
    if (status.ok()) endpoints.push_back(**found);
  }
  std::vector<std::thread> at_their_end;
  for (auto& [name, thread] : asked) {
    if (shared->found[name]) {
      at_their_end.push_back(std::move(thread));
    } else {
      thread.detach();
    }
  }
  lock.unlock();
  for (std::thread& thread : at_their_end) thread.join();
  if (!status.ok()) return status;
  return endpoints;
}

}  // namespace sluice::gateway
