// A RedisStore, or a RedisClusterStore, on a loop of its own, for a test that stands outside of it.
//
//   StoreOnLoop store(ToSocket(server));
//   const LimitPtr limit = store.Prepare(*token_bucket::MakeLimit({5, 1h}, 5));
//   Request request({{.key = Key("api", "ann"), .limit = limit}});
//   store.Ask(request);                                   // sends, and waits for the answer
//   EXPECT_TRUE(request.allowed()) << request.status();
//
// Every wait ends after 20 s, with what there is by then.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/time.h"
#include "sluice/net/event_loops.h"
#include "sluice/net/testing/redis_on_loop.h"
#include "sluice/net/testing/redis_server.h"
#include "sluice/store/redis/redis_cluster_store.h"
#include "sluice/store/redis/redis_store.h"

namespace sluice::redis::testing {

using LimitPtr = std::shared_ptr<const RemoteLimit>;

// The bytes of a key of one part, as RuleSet writes them.
std::string Key(std::string_view rule, std::string_view part);

// To its Unix socket, with short waits between attempts. It may be silent for as long as any test.
RedisStoreOptions ToSocket(const net::testing::RedisServer& server);

struct Want {
  std::string key;
  LimitPtr limit;
  ClaimKind kind = ClaimKind::kBinding;
  std::uint64_t cost = 1;
  bool block = false;
  Duration lease{0};
};

// What the engine would hold while a request is decided.
class Request {
 public:
  explicit Request(std::vector<Want> wants);
  explicit Request(Want want) : Request(std::vector<Want>{std::move(want)}) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Of the last time it was asked.
  [[nodiscard]] const absl::Status& status() const { return status_; }
  [[nodiscard]] bool allowed() const { return status_.ok() && group_.allowed; }
  [[nodiscard]] const RemoteClaim& claim(std::size_t index = 0) const { return claims_[index]; }
  [[nodiscard]] const Decision& decision(std::size_t index = 0) const {
    return claims_[index].decision;
  }
  [[nodiscard]] Time asked() const { return asked_; }
  // From asking to the answer.
  [[nodiscard]] Duration waited() const { return waited_; }

 private:
  friend class StoreOnLoop;

  const std::vector<Want> wants_;
  std::vector<RemoteClaim> claims_;
  RemoteGroup group_;
  absl::Status status_;
  Time asked_;
  Duration waited_{0};
  bool told_ = true;
};

class StoreOnLoop {
 public:
  static constexpr Duration kLong = std::chrono::seconds{20};

  explicit StoreOnLoop(RedisStoreOptions options);
  explicit StoreOnLoop(RedisClusterOptions options);
  StoreOnLoop(const StoreOnLoop&) = delete;
  StoreOnLoop& operator=(const StoreOnLoop&) = delete;
  ~StoreOnLoop();

  LimitPtr Prepare(const Limit& limit);

  // In one turn of the loop.
  void Send(const std::vector<Request*>& requests, Duration deadline = kLong);
  // On the loop already.
  void SendHere(Request& request, Duration deadline = kLong);
  // False: not all of them were told, each once.
  bool Await(const std::vector<Request*>& requests);
  void Ask(Request& request, Duration deadline = kLong) { AskAll({&request}, deadline); }
  void AskAll(const std::vector<Request*>& requests, Duration deadline = kLong);

  void Undo(const Request& request, std::uint64_t units, std::size_t claim = 0);
  void Renew(const Request& request, std::size_t claim = 0);

  // Waits until it holds, asked on the loop every millisecond or so.
  bool AwaitThat(const std::function<bool(const RedisCounters&)>& holds);
  [[nodiscard]] const RedisCounters& counters() const { return store_->counters(); }
  // What on_health was told, "up" or "down" each time: the next so many, once they are there.
  net::testing::Lines Healths(std::size_t count) { return healths_.Take(count); }
  [[nodiscard]] std::size_t healths() const { return healths_.size(); }
  [[nodiscard]] RedisHealth health() const { return store_->health(); }
  // As if so much time passed for what is measured in ticks: silence, rests, the end of connecting.
  void Pass(Duration time);
  void Destroy();
  void DestroyHere() { store_.reset(); }
  void OnLoop(const std::function<void(RedisRemoteStore&)>& work);

 private:
  net::EventLoops loops_{1};
  SystemClock clock_;
  net::testing::LineLog healths_;
  std::unique_ptr<RedisRemoteStore> store_;
  std::mutex mutex_;
  std::condition_variable told_;
};

}  // namespace sluice::redis::testing
