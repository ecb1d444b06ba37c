#include "sluice/net/testing/redis_on_loop.h"

#include <algorithm>
#include <utility>

#include "sluice/base/steady_now.h"

namespace sluice::net::testing {
namespace {

constexpr std::chrono::seconds kPatience(20);

std::string NameOf(RedisState state) {
  switch (state) {
    case RedisState::kConnecting:
      return "connecting";
    case RedisState::kReady:
      return "ready";
    case RedisState::kWaiting:
      break;
  }
  return "waiting";
}

}  // namespace

void LineLog::Add(std::string line) {
  const std::lock_guard lock(mutex_);
  lines_.push_back(std::move(line));
  added_.notify_all();
}

Lines LineLog::Take(std::size_t count) {
  std::unique_lock lock(mutex_);
  added_.wait_for(lock, kPatience, [&] { return lines_.size() >= count; });
  const auto end = lines_.begin() + static_cast<std::ptrdiff_t>(std::min(count, lines_.size()));
  Lines taken(lines_.begin(), end);
  lines_.erase(lines_.begin(), end);
  return taken;
}

bool LineLog::TakeUpTo(std::string_view line) {
  std::unique_lock lock(mutex_);
  auto found = lines_.end();
  added_.wait_for(lock, kPatience, [&] {
    found = std::find(lines_.begin(), lines_.end(), line);
    return found != lines_.end();
  });
  const bool there = found != lines_.end();
  lines_.erase(lines_.begin(), there ? found + 1 : found);
  return there;
}

std::size_t LineLog::size() const {
  const std::lock_guard lock(mutex_);
  return lines_.size();
}

std::string Shown(RedisValue value) {
  switch (value.kind()) {
    case RedisKind::kNil:
      return "nil";
    case RedisKind::kText:
    case RedisKind::kStatus:
      return std::string(value.text());
    case RedisKind::kInteger:
      return std::to_string(value.integer());
    case RedisKind::kError:
      return "-" + std::string(value.error());
    case RedisKind::kArray:
      break;
  }
  std::string text = "[";
  for (std::size_t i = 0; i < value.size(); ++i) text += (i == 0 ? "" : " ") + Shown(value[i]);
  return text + "]";
}

std::string Shown(const absl::StatusOr<RedisReply>& reply) {
  return reply.ok() ? Shown(*reply) : absl::StatusCodeToString(reply.status().code());
}

RedisOnLoop::RedisOnLoop(RedisConnectionOptions options) {
  options.on_state = [this, told = std::move(options.on_state)](RedisState state) {
    states_.Add(NameOf(state));
    if (told) told(state);
  };
  loops_.Start();
  loops_.OnEach([&](EventLoop& loop) {
    redis_ = std::make_unique<RedisConnection>(loop, std::move(options));
  });
}

RedisOnLoop::~RedisOnLoop() {
  Destroy();
  loops_.Stop();
}

void RedisOnLoop::Destroy() {
  loops_.OnEach([&](EventLoop&) { DestroyHere(); });
}

void RedisOnLoop::Pass(Duration time) {
  loops_.OnEach([&](EventLoop& loop) {
    for (auto ticks = time / Deadlines::kTick; ticks > 0; --ticks) loop.deadlines().Tick();
  });
}

void RedisOnLoop::OnLoop(const std::function<void(RedisConnection*)>& work) {
  loops_.OnEach([&](EventLoop&) { work(redis_.get()); });
}

void RedisOnLoop::Send(const std::vector<Words>& commands, Duration deadline) {
  loops_.OnEach([&](EventLoop&) { SendHere(commands, deadline); });
}

void RedisOnLoop::SendHere(const std::vector<Words>& commands, Duration deadline) {
  for (const Words& words : commands) {
    std::string bytes;
    AppendRedisCommand(words, &bytes);
    const absl::Status sent =
        redis_->Send(bytes, SteadyNow() + deadline,
                     [this](absl::StatusOr<RedisReply> reply) { answers_.Add(Shown(reply)); });
    if (!sent.ok()) answers_.Add("!" + absl::StatusCodeToString(sent.code()));
  }
}

void RedisOnLoop::SendThen(const Words& words, Duration deadline,
                           std::function<void(std::string)> done) {
  std::string bytes;
  AppendRedisCommand(words, &bytes);
  OnLoop([&](RedisConnection* redis) {
    const absl::Status sent = redis->Send(
        bytes, SteadyNow() + deadline,
        [done = std::move(done)](absl::StatusOr<RedisReply> reply) { done(Shown(reply)); });
    if (!sent.ok()) answers_.Add("!" + absl::StatusCodeToString(sent.code()));
  });
}

Lines RedisOnLoop::Ask(const std::vector<Words>& commands) {
  Send(commands);
  return Answers(commands.size());
}

std::string RedisOnLoop::Error() {
  std::string error;
  OnLoop([&](RedisConnection* redis) { error = std::string(redis->error().message()); });
  return error;
}

}  // namespace sluice::net::testing
