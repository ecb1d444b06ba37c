#include "sluice/store/redis/internal/script_link.h"

#include <array>
#include <utility>

#include "sluice/base/steady_now.h"
#include "sluice/store/redis/script_call.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;

// A server that is silent for that long is left before.
constexpr Duration kLoadDeadline = 10s;
constexpr Duration kLoadAgain = 100ms;
constexpr std::size_t kShaSize = 40;

std::string LoadCommand(std::string_view script) {
  const std::array<std::string_view, 3> words = {"SCRIPT", "LOAD",
                                                 script.empty() ? ScriptSource() : script};
  std::string command;
  net::AppendRedisCommand(words, &command);
  return command;
}

}  // namespace

ScriptLink::ScriptLink(net::EventLoop& loop, net::RedisConnectionOptions options,
                       std::string_view script, RedisCounters& counters, Events& events)
    : counters_(counters),
      events_(events),
      load_(LoadCommand(script)),
      again_(*this, loop.deadlines()) {
  options.on_state = [this](net::RedisState state) { OnState(state); };
  connection_ = std::make_unique<net::RedisConnection>(loop, std::move(options));
}

void ScriptLink::Close(absl::Status why) {
  if (!connection_) return;
  usable_ = false;
  settled_ = true;
  why_ = std::move(why);
  again_.Clear();
  // What is told may ask us something.
  const std::unique_ptr<net::RedisConnection> closing = std::move(connection_);
}

void ScriptLink::OnState(net::RedisState state) {
  switch (state) {
    case net::RedisState::kConnecting:
      break;
    case net::RedisState::kReady:
      counters_.connects.Add();
      loading_ = false;  // what was on its way on the connection before
      Load();
      break;
    case net::RedisState::kWaiting:
      BeGone(connection_->error());
      break;
  }
}

void ScriptLink::BeGone(absl::Status why) {
  usable_ = false;
  settled_ = true;
  why_ = std::move(why);
  events_.OnGone(why_);
}

absl::Status ScriptLink::Send(std::string_view command, Time deadline,
                              net::RedisConnection::Done done, std::uint32_t replies) {
  if (!connection_) return why_;
  return connection_->Send(command, deadline, std::move(done), replies);
}

void ScriptLink::LoadAgain() {
  if (!loading_) Load();
}

void ScriptLink::Load() {
  if (!connection_ || connection_->state() != net::RedisState::kReady) return;
  const absl::Status sent =
      connection_->Send(load_, SteadyNow() + kLoadDeadline,
                        [this](const absl::StatusOr<net::RedisReply>& reply) { OnLoaded(reply); });
  if (!sent.ok()) return again_.Set(kLoadAgain);  // too much waits
  counters_.script_loads.Add();
  loading_ = true;
  if (sha_.empty() || usable_) return;
  usable_ = settled_ = true;
  events_.OnUsable();
}

void ScriptLink::OnLoaded(const absl::StatusOr<net::RedisReply>& reply) {
  // Lost or closed: the connection's state has said so.
  if (!reply.ok() && !absl::IsDeadlineExceeded(reply.status())) return;
  loading_ = false;
  if (reply.ok() && reply->text().size() == kShaSize) {
    sha_ = reply->text();
    if (usable_) return;
    usable_ = settled_ = true;
    return events_.OnUsable();
  }
  std::string why = "the script cannot be loaded";
  if (reply.ok() && reply->is_error()) {
    OnError(reply->error());
    why.append(": ").append(reply->error());
  }
  again_.Set(kLoadAgain);
  BeGone(absl::UnavailableError(why));
}

void ScriptLink::Renew(std::string_view why) {
  if (connection_) connection_->Renew(why);
}

void ScriptLink::OnError(std::string_view error) {
  const ServerError kind = ServerErrorOf(error);
  counters_.errors[static_cast<std::size_t>(kind)].Add();
  if (kind == ServerError::kReadOnly || kind == ServerError::kMasterDown) {
    Renew(error);
    events_.OnWrongServer(error);
  }
  if (kind == ServerError::kClusterDown) events_.OnClusterDown();
}

}  // namespace sluice::redis
