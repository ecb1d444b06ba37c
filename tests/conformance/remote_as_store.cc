#include "tests/conformance/remote_as_store.h"

#include <gtest/gtest.h>

#include <chrono>

#include "sluice/algorithm/fixed_window.h"
#include "sluice/base/steady_now.h"
#include "sluice/net/testing/redis_cluster.h"
#include "sluice/store/redis/redis_cluster_store.h"
#include "sluice/store/redis/redis_store.h"
#include "sluice/store/redis/testing/script_server.h"
#include "sluice/store/redis/testing/store_on_loop.h"

namespace sluice::conformance {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 20s;
constexpr WallTime kFirstTime{std::chrono::days{20089}};  // 2025-01-01
constexpr WallTime kLastTime{std::chrono::days{31000}};   // in 2054
constexpr Duration kMovedOn = std::chrono::days{20454};   // to 2026-01-01, a Thursday as in 1970

// One for all tests, emptied for each: to start it takes a second or two.
std::uint16_t PortOfCluster() {
  static net::testing::RedisCluster cluster({.primaries = 1});
  EXPECT_EQ(cluster.node(0).Ask({"FLUSHALL"}).text(), "OK");
  return cluster.node(0).port();
}

WallTime OfServer(WallTime wall) { return wall < kFirstTime ? wall + kMovedOn : wall; }

}  // namespace

bool RemoteAsStore::Shows(Now now) {
  const WallTime wall = OfServer(now.wall);
  return wall >= kFirstTime && wall < kLastTime && wall.time_since_epoch() % 1us == 0ns;
}

RemoteAsStore::RemoteAsStore(Of of) : hash_key_(HashKind::kSipHash13, {}) {
  loops_.Start();
  if (of == Of::kServer) {
    server_.emplace();
    clock_connection_.emplace(server_->unix_socket());
    redis::RedisStoreOptions options = redis::testing::ToSocket(*server_);
    options.script = redis::testing::ManualScript();
    SetTime({Time{}, WallTime{}});
    loops_.OnEach([&](net::EventLoop& loop) {
      store_ = std::make_unique<redis::RedisStore>(loop, clock_, std::move(options));
    });
  } else {
    const std::uint16_t port = PortOfCluster();
    clock_connection_.emplace(port);
    redis::RedisClusterOptions options;
    options.seeds = {{"127.0.0.1", port}};
    options.store.script = redis::testing::ManualScript();
    SetTime({Time{}, WallTime{}});
    loops_.OnEach([&](net::EventLoop& loop) {
      auto store = std::make_unique<redis::RedisClusterStore>(loop, clock_, std::move(options));
      split_.emplace(*store, [of_key = store.get()](const RemoteClaim& claim) {
        return of_key->PartOf(claim);
      });
      store_ = std::move(store);
    });
  }
  any_limit_ = *store_->Prepare(*fixed_window::MakeLimit(1, 1s, fixed_window::Align::kClock));
}

RemoteAsStore::~RemoteAsStore() {
  loops_.OnEach([&](net::EventLoop&) {
    split_.reset();
    store_.reset();
  });
  loops_.Stop();
}

Hash128 RemoteAsStore::KeyOf(std::string_view name) {
  const Hash128 hash = hash_key_(name);
  const std::lock_guard lock(keys_mutex_);
  keys_.try_emplace({hash.hi, hash.lo}, redis::testing::Key("key", name));
  return hash;
}

absl::StatusOr<LimitId> RemoteAsStore::Register(const Limit& limit) {
  absl::StatusOr<LimitPtr> prepared = store_->Prepare(limit);
  if (!prepared.ok()) return prepared.status();
  const std::lock_guard lock(calls_mutex_);
  limits_.push_back(*std::move(prepared));
  return static_cast<LimitId>(limits_.size() - 1);
}

void RemoteAsStore::Release(LimitId /*id*/, Now /*now*/) {}

void RemoteAsStore::SetTime(Now now) {
  const auto us =
      std::chrono::duration_cast<std::chrono::microseconds>(OfServer(now.wall).time_since_epoch());
  const std::string text = redis::testing::ClockText(us.count());
  EXPECT_EQ(clock_connection_->Ask({"SET", redis::testing::kClockKey, text}).text(), "OK");
}

RemoteClaim RemoteAsStore::RemoteOf(const Claim& claim) {
  const std::lock_guard lock(keys_mutex_);
  return {.key = keys_.at({claim.key.hi, claim.key.lo}),
          .limit = limits_.at(claim.limit_id).get(),
          .kind = claim.kind,
          .charge_denied = claim.charge_denied,
          .cost = claim.cost,
          .receipt = claim.receipt};
}

void RemoteAsStore::AskAndWait(std::vector<RemoteGroup>& groups) {
  due_ = groups.size();
  const auto tell = [this](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    const std::lock_guard lock(told_mutex_);
    --due_;
    told_.notify_all();
  };
  loops_.OnEach([&](net::EventLoop&) {
    for (RemoteGroup& group : groups) {
      const absl::Status asked = this->asked().Apply(group, SteadyNow() + kPatience, tell);
      if (!asked.ok()) tell(asked);
    }
  });
  std::unique_lock lock(told_mutex_);
  told_.wait(lock, [this] { return due_ == 0; });
  lock.unlock();
  // What was vetoed comes back at the time that is set now.
  while (split_ && store_->counters().undos_waiting.value() > 0) {
    loops_.OnEach([](net::EventLoop&) {});
  }
}

void RemoteAsStore::Apply(std::span<ClaimGroup> groups, Now now) noexcept {
  const std::lock_guard lock(calls_mutex_);
  SetTime(now);
  std::vector<std::vector<RemoteClaim>> claims(groups.size());
  std::vector<RemoteGroup> asked(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const Claim& claim : groups[i].claims) claims[i].push_back(RemoteOf(claim));
    asked[i].claims = claims[i];
  }
  AskAndWait(asked);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].allowed = asked[i].allowed;
    for (std::size_t k = 0; k < claims[i].size(); ++k) {
      groups[i].claims[k].decision = claims[i][k].decision;
      groups[i].claims[k].receipt = claims[i][k].receipt;
    }
  }
}

// What is given back goes before what is asked in the same turn, and the server answers in order.
void RemoteAsStore::DoAndWait(const std::function<void(RemoteStore&)>& work) {
  RemoteClaim look{.key = "3:any", .limit = any_limit_.get(), .cost = 0};
  std::vector<RemoteGroup> groups(1);
  groups[0].claims = {&look, 1};
  const std::string key = redis::testing::Key("any", "");
  look.key = key;
  loops_.OnEach([&](net::EventLoop&) { work(asked()); });
  AskAndWait(groups);
}

void RemoteAsStore::Undo(Claim& claim, std::uint64_t units, Now now) noexcept {
  const std::lock_guard lock(calls_mutex_);
  if (claim.receipt.units == 0 || units == 0) {
    claim.receipt.units = 0;
    return;
  }
  SetTime(now);
  const RemoteClaim remote = RemoteOf(claim);
  DoAndWait([&](RemoteStore& store) { store.Undo(remote, units); });
  claim.receipt.units = 0;
}

bool RemoteAsStore::Renew(const Claim& claim, Now now) noexcept {
  const std::lock_guard lock(calls_mutex_);
  if (claim.receipt.units == 0) return false;
  SetTime(now);
  const RemoteClaim remote = RemoteOf(claim);
  DoAndWait([&](RemoteStore& store) { store.Renew(remote); });
  return true;
}

}  // namespace sluice::conformance
