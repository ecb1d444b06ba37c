#include "sluice/store/redis/testing/store_on_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sluice/base/steady_now.h"

namespace sluice::redis::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kPatience(20);

}  // namespace

std::string Key(std::string_view rule, std::string_view part) {
  std::string key = std::to_string(rule.size()) + ":" + std::string(rule);
  const auto length = static_cast<std::uint32_t>(part.size());
  key.append(reinterpret_cast<const char*>(&length), sizeof length);
  return key.append(part);
}

RedisStoreOptions ToSocket(const net::testing::RedisServer& server) {
  RedisStoreOptions options;
  options.connection.unix_socket = server.unix_socket();
  options.connection.max_backoff = 20ms;
  options.connection.max_silence = 20s;
  return options;
}

Request::Request(std::vector<Want> wants) : wants_(std::move(wants)) {
  for (const Want& want : wants_) {
    claims_.push_back({.key = want.key,
                       .block = want.block,
                       .limit = want.limit.get(),
                       .kind = want.kind,
                       .cost = want.cost,
                       .lease = want.lease});
  }
  group_.claims = claims_;
}

StoreOnLoop::StoreOnLoop(RedisStoreOptions options) {
  options.on_health = [this](const RedisHealth& health) {
    healths_.Add(health.up ? "up" : "down");
  };
  loops_.Start();
  loops_.OnEach([&](net::EventLoop& loop) {
    store_ = std::make_unique<RedisStore>(loop, clock_, std::move(options));
  });
}

StoreOnLoop::StoreOnLoop(RedisClusterOptions options) {
  options.store.on_health = [this](const RedisHealth& health) {
    healths_.Add(health.up ? "up" : "down");
  };
  loops_.Start();
  loops_.OnEach([&](net::EventLoop& loop) {
    store_ = std::make_unique<RedisClusterStore>(loop, clock_, std::move(options));
  });
}

StoreOnLoop::~StoreOnLoop() {
  Destroy();
  loops_.Stop();
}

void StoreOnLoop::Destroy() {
  loops_.OnEach([&](net::EventLoop&) { DestroyHere(); });
}

LimitPtr StoreOnLoop::Prepare(const Limit& limit) {
  absl::StatusOr<LimitPtr> prepared = store_->Prepare(limit);
  EXPECT_TRUE(prepared.ok()) << prepared.status();
  return *std::move(prepared);
}

void StoreOnLoop::SendHere(Request& request, Duration deadline) {
  {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(std::exchange(request.told_, false)) << "asked again before the answer";
  }
  request.asked_ = SteadyNow();
  const auto tell = [this, &request](const absl::Status& status) {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(std::exchange(request.told_, true)) << "told twice";
    // One of our own: Debian's Abseil counts its references where no sanitizer sees it.
    request.status_ = absl::Status(status.code(), status.message());
    request.waited_ = SteadyNow() - request.asked_;
    told_.notify_all();
  };
  const absl::Status asked = store_->Apply(request.group_, request.asked_ + deadline, tell);
  if (!asked.ok()) tell(asked);
}

void StoreOnLoop::Send(const std::vector<Request*>& requests, Duration deadline) {
  loops_.OnEach([&](net::EventLoop&) {
    for (Request* request : requests) SendHere(*request, deadline);
  });
}

bool StoreOnLoop::Await(const std::vector<Request*>& requests) {
  std::unique_lock lock(mutex_);
  return told_.wait_for(lock, kPatience, [&] {
    return std::ranges::all_of(requests, [](const Request* request) { return request->told_; });
  });
}

void StoreOnLoop::AskAll(const std::vector<Request*>& requests, Duration deadline) {
  Send(requests, deadline);
  ASSERT_TRUE(Await(requests));
}

void StoreOnLoop::Undo(const Request& request, std::uint64_t units, std::size_t claim) {
  OnLoop([&](RedisRemoteStore& store) { store.Undo(request.claims_[claim], units); });
}

void StoreOnLoop::Renew(const Request& request, std::size_t claim) {
  OnLoop([&](RedisRemoteStore& store) { store.Renew(request.claims_[claim]); });
}

bool StoreOnLoop::AwaitThat(const std::function<bool(const RedisCounters&)>& holds) {
  const Time until = SteadyNow() + kPatience;
  std::mutex unused;
  std::condition_variable never;
  while (!holds(counters())) {
    if (SteadyNow() > until) return false;
    std::unique_lock lock(unused);
    never.wait_for(lock, 1ms);
  }
  return true;
}

void StoreOnLoop::Pass(Duration time) {
  loops_.OnEach([&](net::EventLoop& loop) {
    for (auto ticks = time / net::Deadlines::kTick; ticks > 0; --ticks) loop.deadlines().Tick();
  });
}

void StoreOnLoop::OnLoop(const std::function<void(RedisRemoteStore&)>& work) {
  loops_.OnEach([&](net::EventLoop&) { work(*store_); });
}

}  // namespace sluice::redis::testing
