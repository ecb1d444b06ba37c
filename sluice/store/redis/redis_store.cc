#include "sluice/store/redis/redis_store.h"

#include <utility>

#include "sluice/store/redis/internal/call_queue.h"
#include "sluice/store/redis/internal/give_back.h"
#include "sluice/store/redis/internal/guard.h"
#include "sluice/store/redis/internal/loop_hooks.h"
#include "sluice/store/redis/internal/redis_limit.h"
#include "sluice/store/redis/internal/script_link.h"
#include "sluice/store/redis/internal/server_questions.h"
#include "sluice/store/redis/internal/store_parts.h"
#include "sluice/store/redis/script_call.h"

namespace sluice::redis {

class RedisStore::Core final : public ScriptLink::Events {
 public:
  Core(net::EventLoop& loop, const Clock& clock, RedisStoreOptions options)
      : keys_(std::move(options.keys)),
        turn_(loop, [this] { OnTurn(); }),
        parts_{clock, keys_, script_, counters_, turn_, link_},
        give_back_(loop, parts_, options.max_undos_waiting, options.mark_undos),
        questions_(parts_, std::move(options.on_report)),
        guard_(loop, parts_, options.breaker, std::move(options.on_health)),
        calls_(loop, parts_, options.max_waiting, guard_, give_back_),
        link_(loop, std::move(options.connection), options.script, counters_, *this) {}
  ~Core() override {
    link_.Close();
    calls_.FailWaiting(link_.why());
  }

  absl::Status Apply(RemoteGroup& group, Time deadline, Done done) {
    return calls_.Add(group, deadline, std::move(done));
  }
  void Undo(const RemoteClaim& claim, std::uint64_t units) { give_back_.Undo(claim, units); }
  void Renew(const RemoteClaim& claim) { give_back_.Renew(claim); }
  [[nodiscard]] const RedisCounters& counters() const { return counters_; }
  [[nodiscard]] RedisHealth health() const { return guard_.health(); }

 private:
  void OnUsable() override {
    guard_.OnUsable();
    questions_.Ask();
    turn_.Ask();
  }
  void OnGone(const absl::Status& why) override {
    guard_.OnGone();
    calls_.FailWaiting(why);
  }
  void OnWrongServer(std::string_view why) override { guard_.OnWrongServer(why); }

  // What comes back goes first: it makes room for what is asked.
  void OnTurn() {
    give_back_.Send();
    if (link_.usable()) calls_.Send();
  }

  const KeyOptions keys_;
  RedisCounters counters_;
  ScriptCall script_;
  TurnEnd turn_;
  const StoreParts parts_;
  GiveBack give_back_;
  ServerQuestions questions_;
  Guard guard_;
  CallQueue calls_;
  ScriptLink link_;
};

RedisStore::RedisStore(net::EventLoop& loop, const Clock& clock, RedisStoreOptions options)
    : core_(std::make_unique<Core>(loop, clock, std::move(options))) {}

RedisStore::~RedisStore() = default;

absl::StatusOr<std::shared_ptr<const RemoteLimit>> RedisStore::Prepare(const Limit& limit) const {
  absl::StatusOr<ScriptLimit> script = ScriptLimit::Make(limit);
  if (!script.ok()) return script.status();
  return std::make_shared<const RedisLimit>(*std::move(script));
}

absl::Status RedisStore::Apply(RemoteGroup& group, Time deadline, Done done) {
  return core_->Apply(group, deadline, std::move(done));
}

void RedisStore::Undo(const RemoteClaim& claim, std::uint64_t units) { core_->Undo(claim, units); }
void RedisStore::Renew(const RemoteClaim& claim) { core_->Renew(claim); }
const RedisCounters& RedisStore::counters() const { return core_->counters(); }
RedisHealth RedisStore::health() const { return core_->health(); }

}  // namespace sluice::redis
