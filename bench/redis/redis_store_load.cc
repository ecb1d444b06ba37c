// Keeps a RedisStore busy: so many requests under way at a time, on keys in turn, for some seconds.
//
//   redis_store_load PORT IN_FLIGHT SECONDS KEYS RULES LIMIT
//
// Prints decisions a second, how many of them were allowed, calls, and this process' CPU time a
// decision. RULES: of the same client, one claim for each. LIMIT: what each key may spend a second.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sluice/base/clock.h"
#include "sluice/base/steady_now.h"
#include "sluice/net/event_loops.h"
#include "sluice/store/redis/redis_store.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

struct Settings {
  std::uint16_t port;
  std::size_t in_flight;
  std::chrono::seconds length;
  std::size_t keys;
  std::size_t rules;
  std::int64_t limit;
};

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The bytes of a key as RuleSet makes them: the rule's name and a part, each behind its length.
std::string KeyBytes(std::size_t rule, std::size_t client) {
  const std::string name = absl::StrCat("rule-", rule);
  const std::string identity = absl::StrCat("client-", client);
  const auto size = static_cast<std::uint32_t>(identity.size());
  std::string bytes = absl::StrCat(name.size(), ":", name);
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(identity);
  return bytes;
}

class Load {
 public:
  Load(redis::RedisStore& store, const Settings& settings)
      : store_(store),
        settings_(settings),
        limit_(*store.Prepare(*token_bucket::MakeLimit(
            {.count = settings.limit, .period = 1s}, static_cast<std::uint64_t>(settings.limit)))),
        requests_(settings.in_flight) {
    for (std::size_t client = 0; client < settings.keys; ++client) {
      for (std::size_t rule = 0; rule < settings.rules; ++rule) {
        keys_.push_back(KeyBytes(rule, client));
      }
    }
  }

  void Begin() {
    end_ = SteadyNow() + settings_.length;
    for (Request& request : requests_) Ask(request);
  }
  [[nodiscard]] bool ended() const { return running_ == 0; }
  [[nodiscard]] std::uint64_t decided() const { return decided_; }
  [[nodiscard]] std::uint64_t allowed() const { return allowed_; }
  [[nodiscard]] std::uint64_t failed() const { return failed_; }

 private:
  struct Request {
    std::vector<RemoteClaim> claims;
    RemoteGroup group;
  };

  void Ask(Request& request) {
    const Time now = SteadyNow();
    if (now >= end_) return;
    const std::size_t client = next_++ * 7919 % settings_.keys;
    request.claims.assign(settings_.rules, RemoteClaim{.limit = limit_.get()});
    for (std::size_t rule = 0; rule < settings_.rules; ++rule) {
      request.claims[rule].key = keys_[client * settings_.rules + rule];
    }
    request.group = {.claims = request.claims};
    const absl::Status sent =
        store_.Apply(request.group, now + 1s, [this, &request](const absl::Status& status) {
          --running_;
          ++(status.ok() ? decided_ : failed_);
          allowed_ += status.ok() && request.group.allowed ? 1 : 0;
          Ask(request);
        });
    if (sent.ok()) {
      ++running_;
    } else {
      ++failed_;
    }
  }

  redis::RedisStore& store_;
  const Settings settings_;
  const std::shared_ptr<const RemoteLimit> limit_;
  std::vector<std::string> keys_;  // of each client, those of all rules
  std::vector<Request> requests_;
  Time end_{};
  std::size_t next_ = 0;
  std::size_t running_ = 0;
  std::uint64_t decided_ = 0;
  std::uint64_t allowed_ = 0;
  std::uint64_t failed_ = 0;
};

int Run(const Settings& settings) {
  SystemClock clock;
  net::EventLoops loops(1);
  auto owned = std::make_unique<redis::RedisStore>(
      loops[0], clock,
      redis::RedisStoreOptions{.connection = {.address = {"127.0.0.1", settings.port}},
                               .max_waiting = 2 * settings.in_flight});
  redis::RedisStore& store = *owned;
  loops.Start();
  const auto wait_until = [&loops](const auto& holds) {
    for (bool done = false; !done;) {
      std::this_thread::sleep_for(1ms);
      loops.OnEach([&](net::EventLoop&) { done = holds(); });
    }
  };
  wait_until([&] { return store.health().up; });
  Load load(store, settings);
  const double cpu = CpuSeconds();
  const Time begin = SteadyNow();
  loops.OnEach([&](net::EventLoop&) { load.Begin(); });
  wait_until([&] { return load.ended(); });
  const double seconds = std::chrono::duration<double>(SteadyNow() - begin).count();
  const auto decided = static_cast<double>(load.decided());
  std::printf(
      "{\"per_second\": %.0f, \"allowed\": %.4f, \"failed\": %llu, \"calls\": %llu, \"cpu_us\": "
      "%.3f}\n",
      decided / seconds, static_cast<double>(load.allowed()) / decided,
      static_cast<unsigned long long>(load.failed()),
      static_cast<unsigned long long>(store.counters().calls.value()),
      (CpuSeconds() - cpu) * 1e6 / decided);
  loops.OnEach([&](net::EventLoop&) { owned.reset(); });
  loops.Stop();
  return load.failed() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "redis_store_load PORT IN_FLIGHT SECONDS KEYS RULES LIMIT\n");
    return 2;
  }
  return sluice::Run({.port = static_cast<std::uint16_t>(std::atoi(argv[1])),
                      .in_flight = static_cast<std::size_t>(std::atoi(argv[2])),
                      .length = std::chrono::seconds(std::atoi(argv[3])),
                      .keys = static_cast<std::size_t>(std::atoi(argv[4])),
                      .rules = static_cast<std::size_t>(std::atoi(argv[5])),
                      .limit = std::atoi(argv[6])});
}
