#include "sluice/store/redis/internal/map_source.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/base/random.h"
#include "sluice/base/steady_now.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;

constexpr Duration kMinBackoff = 10ms;
constexpr Duration kSpread = 20ms;  // of those who hear of a change at the same time
constexpr Duration kFindEvery = 1h;

std::string Question() {
  constexpr std::array<std::string_view, 2> kWords = {"CLUSTER", "SLOTS"};
  std::string command;
  net::AppendRedisCommand(kWords, &command);
  return command;
}

}  // namespace

MapSource::MapSource(net::EventLoop& loop, MapSourceOptions options, Events& events)
    : loop_(loop),
      options_(std::move(options)),
      events_(events),
      question_(Question()),
      backoff_(kMinBackoff),
      wake_(loop, [this] { Look(); }) {
  LookAt(SteadyNow());
}

MapSource::~MapSource() { *self_ = nullptr; }

void MapSource::LookAt(Time at) {
  due_ = at;
  wake_.At(at);
}

void MapSource::LookSoon() {
  if (due_ == Time::max()) return;  // it is being asked, and asks again if that does not help
  const Time soon = std::max(SteadyNow(), last_ + options_.look_soon / 2) + DrawEvenly(kSpread);
  if (soon < due_) LookAt(soon);
}

void MapSource::Look() {
  if (asking_) return;
  if (const Time now = SteadyNow(); now < due_) return wake_.At(due_);
  due_ = Time::max();
  asking_ = true;
  ScriptLink* const link = events_.NextToAsk();
  if (link == nullptr) return LookAtSeeds();
  seed_.reset();
  const absl::Status sent = link->Send(question_, SteadyNow() + options_.connection.connect_timeout,
                                       Reply(link->server()));
  if (!sent.ok()) OnFailed(sent);
}

void MapSource::LookAtSeeds() {
  if (seed_) return OnSeed(seed_->state());
  net::RedisConnectionOptions connection = options_.connection;
  // Attempts go to one after another.
  connection.find_address = [this](Duration, absl::AnyInvocable<void(net::RedisAddresses)> found) {
    std::vector<net::HostPort> seeds = options_.seeds;
    std::ranges::rotate(seeds, seeds.begin() + static_cast<std::ptrdiff_t>(first_seed_));
    loop_.Post([seeds = std::move(seeds), found = std::move(found)]() mutable {
      found(std::move(seeds));
    });
  };
  connection.find_every = kFindEvery;
  connection.on_state = [this](net::RedisState state) {
    if (!asking_) return;
    OnSeed(state);
    if (state == net::RedisState::kWaiting) OnFailed(seed_->error());
  };
  seed_ = std::make_unique<net::RedisConnection>(loop_, std::move(connection));
}

// While it is not ready its next state is waited for.
void MapSource::OnSeed(net::RedisState state) {
  if (state != net::RedisState::kReady) return;
  const absl::Status sent = seed_->Send(
      question_, SteadyNow() + options_.connection.connect_timeout, Reply(seed_->server()));
  if (!sent.ok()) OnFailed(sent);
}

net::RedisConnection::Done MapSource::Reply(std::string asked) {
  return [self = self_, asked = std::move(asked)](const absl::StatusOr<net::RedisReply>& reply) {
    if (*self != nullptr) (*self)->OnReply(asked, reply);
  };
}

void MapSource::OnReply(const std::string& asked, const absl::StatusOr<net::RedisReply>& reply) {
  if (!asking_) return;  // the connection's state has said so
  if (!reply.ok()) return OnFailed(reply.status());
  const auto map = ReadSlots(*reply, net::ParseHostPort(asked).value_or(net::HostPort{}));
  if (!map.ok()) {
    return OnFailed(
        absl::UnavailableError(absl::StrCat("redis ", asked, ": ", map.status().message())));
  }
  if (map->empty()) {  // it was told to forget the cluster, or the cluster is none yet
    return OnFailed(
        absl::UnavailableError(absl::StrCat("redis ", asked, ": no slot has a server")));
  }
  asking_ = false;
  backoff_ = kMinBackoff;
  last_ = SteadyNow();
  events_.OnMap(*map);
  const Duration pause = events_.Well() ? options_.look_every : options_.look_soon;
  LookAt(last_ + pause - DrawEvenly(pause / 4));
}

// The one that comes next in their order.
std::size_t MapSource::SeedBehind(std::string_view address) const {
  const auto seed = std::ranges::find(options_.seeds, address,
                                      [](const net::HostPort& at) { return ToString(at); });
  return static_cast<std::size_t>(seed - options_.seeds.begin() + 1) % options_.seeds.size();
}

void MapSource::OnFailed(const absl::Status& why) {
  asking_ = false;
  if (seed_ && seed_->state() == net::RedisState::kReady) {
    first_seed_ = SeedBehind(seed_->server());
    seed_->Renew({why.message().data(), why.message().size()});
  }
  last_ = SteadyNow();
  LookAt(last_ + DrawEvenly(backoff_));
  backoff_ = std::min(backoff_ * 2, options_.look_soon);
  events_.OnNoMap(why);
}

}  // namespace sluice::redis
