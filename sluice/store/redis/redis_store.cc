#include "sluice/store/redis/redis_store.h"

#include <utility>

#include "sluice/store/redis/internal/one_server.h"
#include "sluice/store/redis/internal/redis_limit.h"
#include "sluice/store/redis/internal/waiting_groups.h"

namespace sluice::redis {

class RedisStore::Core {
 public:
  Core(net::EventLoop& loop, const Clock& clock, RedisStoreOptions options)
      : keys_(std::move(options.keys)),
        groups_(loop, keys_, counters_, options.max_waiting),
        server_(loop, {clock, keys_, counters_, groups_},
                {.connection = std::move(options.connection),
                 .breaker = options.breaker,
                 .on_health = std::move(options.on_health),
                 .on_report = std::move(options.on_report),
                 .max_undos_waiting = options.max_undos_waiting,
                 .mark_undos = options.mark_undos,
                 .script = std::move(options.script)}) {}

  absl::Status Apply(RemoteGroup& group, Time deadline, Done done) {
    AskedGroup* const asked = groups_.Free();
    if (asked == nullptr) return groups_.Refuse(groups_.full());
    const absl::Status entered = server_.calls().Enter(*asked);
    if (!entered.ok()) return groups_.Refuse(entered);
    groups_.Name(*asked, group);
    groups_.Start(*asked, deadline, std::move(done));
    return absl::OkStatus();
  }
  [[nodiscard]] OneServer& server() { return server_; }
  [[nodiscard]] const OneServer& server() const { return server_; }
  [[nodiscard]] const RedisCounters& counters() const { return counters_; }

 private:
  const KeyOptions keys_;
  RedisCounters counters_;
  WaitingGroups groups_;
  OneServer server_;
};

RedisStore::RedisStore(net::EventLoop& loop, const Clock& clock, RedisStoreOptions options)
    : core_(std::make_unique<Core>(loop, clock, std::move(options))) {}

RedisStore::~RedisStore() = default;

absl::StatusOr<std::shared_ptr<const RemoteLimit>> RedisRemoteStore::Prepare(
    const Limit& limit) const {
  absl::StatusOr<ScriptLimit> script = ScriptLimit::Make(limit);
  if (!script.ok()) return script.status();
  return std::make_shared<const RedisLimit>(*std::move(script));
}

absl::Status RedisStore::Apply(RemoteGroup& group, Time deadline, Done done) {
  return core_->Apply(group, deadline, std::move(done));
}

void RedisStore::Undo(const RemoteClaim& claim, std::uint64_t units) {
  core_->server().give_back().Undo(claim, units);
}
void RedisStore::Renew(const RemoteClaim& claim) { core_->server().give_back().Renew(claim); }
const RedisCounters& RedisStore::counters() const { return core_->counters(); }
RedisHealth RedisStore::health() const { return core_->server().health(); }

}  // namespace sluice::redis
