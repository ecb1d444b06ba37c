// Keeps the stores of some event loops busy: so many requests under way at a time, in all, on keys
// in turn, for some seconds.
//
//   redis_store_load PORT LOOPS IN_FLIGHT SECONDS KEYS RULES LIMIT
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
#include "absl/strings/str_format.h"
#include "sluice/base/clock.h"
#include "sluice/base/steady_now.h"
#include "sluice/net/event_loops.h"
#include "sluice/store/redis/redis_store.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

struct Settings {
  std::uint16_t port;
  std::size_t loops;
  std::size_t in_flight;  // on each loop
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

// Of one loop.
class Load {
 public:
  Load(net::EventLoop& loop, const Clock& clock, const Settings& settings)
      : store_(loop, clock,
               {.connection = {.address = {"127.0.0.1", settings.port}},
                .max_waiting = 2 * settings.in_flight}),
        settings_(settings),
        limit_(*store_.Prepare(*token_bucket::MakeLimit(
            {.count = settings.limit, .period = 1s}, static_cast<std::uint64_t>(settings.limit)))),
        requests_(settings.in_flight),
        next_(loop.index()) {
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
  [[nodiscard]] const redis::RedisStore& store() const { return store_; }
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
    const std::size_t client = next_ * 7919 % settings_.keys;
    next_ += settings_.loops;
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

  redis::RedisStore store_;
  const Settings settings_;
  const std::shared_ptr<const RemoteLimit> limit_;
  std::vector<std::string> keys_;  // of each client, those of all rules
  std::vector<Request> requests_;
  Time end_{};
  std::size_t next_;
  std::size_t running_ = 0;
  std::uint64_t decided_ = 0;
  std::uint64_t allowed_ = 0;
  std::uint64_t failed_ = 0;
};

int Run(const Settings& settings) {
  SystemClock clock;
  net::EventLoops loops(settings.loops);
  std::vector<std::unique_ptr<Load>> loads;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    loads.push_back(std::make_unique<Load>(loops[i], clock, settings));
  }
  loops.Start();
  const auto wait_until = [&](const auto& holds) {
    for (bool done = false; !done;) {
      std::this_thread::sleep_for(1ms);
      done = true;
      loops.OnEach([&](net::EventLoop& loop) { done = done && holds(*loads[loop.index()]); });
    }
  };
  wait_until([](const Load& load) { return load.store().health().up; });
  const double cpu = CpuSeconds();
  const Time begin = SteadyNow();
  loops.OnEach([&](net::EventLoop& loop) { loads[loop.index()]->Begin(); });
  wait_until([](const Load& load) { return load.ended(); });
  const double seconds = std::chrono::duration<double>(SteadyNow() - begin).count();
  std::uint64_t decided = 0;
  std::uint64_t allowed = 0;
  std::uint64_t failed = 0;
  std::uint64_t calls = 0;
  for (const auto& load : loads) {
    decided += load->decided();
    allowed += load->allowed();
    failed += load->failed();
    calls += load->store().counters().calls.value();
  }
  std::printf("%s\n",
              absl::StrFormat("{\"per_second\": %.0f, \"allowed\": %.4f, \"failed\": %d, "
                              "\"calls\": %d, \"cpu_us\": %.3f}",
                              static_cast<double>(decided) / seconds,
                              static_cast<double>(allowed) / static_cast<double>(decided), failed,
                              calls, (CpuSeconds() - cpu) * 1e6 / static_cast<double>(decided))
                  .c_str());
  loops.OnEach([&](net::EventLoop& loop) { loads[loop.index()].reset(); });
  loops.Stop();
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr, "redis_store_load PORT LOOPS IN_FLIGHT SECONDS KEYS RULES LIMIT\n");
    return 2;
  }
  const auto loops = static_cast<std::size_t>(std::atoi(argv[2]));
  return sluice::Run({.port = static_cast<std::uint16_t>(std::atoi(argv[1])),
                      .loops = loops,
                      .in_flight = static_cast<std::size_t>(std::atoi(argv[3])) / loops,
                      .length = std::chrono::seconds(std::atoi(argv[4])),
                      .keys = static_cast<std::size_t>(std::atoi(argv[5])),
                      .rules = static_cast<std::size_t>(std::atoi(argv[6])),
                      .limit = std::atoi(argv[7])});
}
