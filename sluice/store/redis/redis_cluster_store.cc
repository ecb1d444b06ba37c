#include "sluice/store/redis/redis_cluster_store.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/base/steady_now.h"
#include "sluice/store/redis/internal/map_source.h"
#include "sluice/store/redis/internal/one_server.h"
#include "sluice/store/redis/internal/waiting_groups.h"
#include "sluice/store/redis/redis_slots.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;

// More than any cluster has (its own bound is said to be 1000 nodes): of what servers name, not all
// can be true.
constexpr std::size_t kMostServers = 1024;
// Before a group whose keys are on their way tries again: this, then twice as long, and so on.
constexpr Duration kPause = 500us;
constexpr int kMostDoublings = 4;
// A call has groups of one slot alone: there are more of them than one server would get.
constexpr std::size_t kUnsentBytes = std::size_t{4} << 20;

OneServerOptions OptionsOfEach(const RedisStoreOptions& store) {
  OneServerOptions each{.connection = store.connection,
                        .breaker = store.breaker,
                        .on_report = store.on_report,
                        .max_undos_waiting = store.max_undos_waiting,
                        .mark_undos = true,
                        .script = store.script};
  each.connection.unix_socket.clear();
  each.connection.find_address = nullptr;
  each.connection.primary = false;  // a replica says MOVED
  each.connection.max_waiting += store.max_waiting;
  each.connection.max_unsent_bytes = std::max(each.connection.max_unsent_bytes, kUnsentBytes);
  return each;
}

MapSourceOptions OptionsOfMap(const RedisClusterOptions& options,
                              const net::RedisConnectionOptions& connection) {
  return {.seeds = options.seeds,
          .connection = connection,
          .look_every = options.look_every,
          .look_soon = options.look_soon};
}

}  // namespace

class RedisClusterStore::Core final : private MapSource::Events, private GroupHolder {
 public:
  Core(net::EventLoop& loop, const Clock& clock, RedisClusterOptions options)
      : loop_(loop),
        clock_(clock),
        keys_(options.store.keys),
        on_health_(std::move(options.store.on_health)),
        each_(OptionsOfEach(options.store)),
        seeds_(options.seeds.size()),
        keep_unused_(options.keep_unused),
        groups_(loop, keys_, counters_, options.store.max_waiting),
        owners_(kSlotCount),
        no_owner_(absl::UnavailableError("no server of the cluster has the key's slot")),
        why_(absl::UnavailableError("the cluster has not answered yet")),
        health_{.since = clock.Read().wall, .why = std::string(why_.message())},
        resume_(loop, [this] { Resume(); }),
        bury_(loop, [this] { Bury(); }),
        source_(std::in_place, loop, OptionsOfMap(options, each_.connection),
                static_cast<MapSource::Events&>(*this)) {
    counters_.slots_missing.Set(kSlotCount);
  }
  ~Core() override;

  [[nodiscard]] std::uint16_t SlotOfClaim(const RemoteClaim& claim) const;
  absl::Status Apply(RemoteGroup& group, Time deadline, Done done);
  void Undo(const RemoteClaim& claim, std::uint64_t units);
  void Renew(const RemoteClaim& claim);
  [[nodiscard]] const RedisCounters& counters() const { return counters_; }
  [[nodiscard]] RedisHealth health() const {
    const std::lock_guard lock(mutex_);
    return health_;
  }

 private:
  // One of the cluster's, a primary or what was named as one.
  struct Server final : Redirects {
    Server(Core& of, net::HostPort at);

    void Follow(AskedGroup& asked, const Redirect& to, Time now) override {
      cluster.Follow(*this, asked, to, now);
    }
    GiveBack* Follow(const Redirect& to) override { return cluster.Follow(*this, to); }
    GiveBack* OwnerOf(std::uint16_t slot) override {
      Server* const owner = cluster.owners_[slot];
      return owner == nullptr ? nullptr : &owner->one.give_back();
    }

    Core& cluster;
    const net::HostPort address;
    std::size_t slots = 0;  // that it has
    Time named;             // last, by a map or another server
    bool known = false;     // whether it is up or not
    OneServer one;
  };

  // Of the map.
  void OnMap(const std::vector<SlotRange>& map) override;
  void OnNoMap(const absl::Status& why) override;
  ScriptLink* NextToAsk() override;
  [[nodiscard]] bool Well() const override { return missing_ == 0; }

  absl::Status Enter(AskedGroup& asked);
  void OnLate(AskedGroup& asked, Time now) override;
  void EnterAll(std::vector<AskedGroup*>& asked);
  void Follow(Server& from, AskedGroup& asked, const Redirect& to, Time now);
  GiveBack* Follow(Server& from, const Redirect& to);
  Server* Named(Server& from, const Redirect& to);
  void Pause(AskedGroup& asked, Time now);
  void Resume();
  void Count(const Redirect& to) { counters_.redirects[static_cast<std::size_t>(to.kind)].Add(); }

  Server* ServerAt(const net::HostPort& address);
  GiveBack* GiveBackFor(const RemoteClaim& claim);
  void Give(std::uint16_t slot, Server* owner);
  void DropUnused(Time now);
  void Bury();
  void OnServer(Server& server);
  void Tell();
  [[nodiscard]] RedisHealth HealthNow() const;

  net::EventLoop& loop_;
  const Clock& clock_;
  const KeyOptions keys_;
  const std::function<void(const RedisHealth&)> on_health_;
  const OneServerOptions each_;
  const std::size_t seeds_;
  const Duration keep_unused_;
  RedisCounters counters_;
  WaitingGroups groups_;
  mutable std::string name_;  // of a key, for as long as its slot is computed
  bool closing_ = false;

  std::vector<Server*> owners_;  // of each slot; null: nobody
  bool has_map_ = false;
  std::size_t failures_ = 0;     // in a row, to get one
  const absl::Status no_owner_;  // ready made, for it is given to many
  absl::Status why_;             // there is no map
  std::size_t missing_ = kSlotCount;
  std::size_t next_to_ask_ = 0;

  std::vector<AskedGroup*> homeless_;  // until there is a map
  std::vector<AskedGroup*> paused_;

  bool told_ = false;         // whether it is up or not
  mutable std::mutex mutex_;  // guards health_, which other threads read
  RedisHealth health_;

  Wake resume_;
  TurnEnd bury_;
  std::map<std::string, std::unique_ptr<Server>, std::less<>> servers_;  // by address
  std::vector<std::unique_ptr<Server>> unused_;                          // to go, soon
  std::optional<MapSource> source_;  // last: its callbacks come here
};

RedisClusterStore::Core::Server::Server(Core& of, net::HostPort at)
    : cluster(of),
      address(std::move(at)),
      one(of.loop_, {of.clock_, of.keys_, of.counters_, of.groups_}, [&] {
        OneServerOptions options = of.each_;
        options.connection.address = address;
        options.on_health = [this](const RedisHealth&) { cluster.OnServer(*this); };
        options.on_cluster_down = [this] { cluster.source_->LookSoon(); };
        options.redirects = this;
        return options;
      }()) {}

RedisClusterStore::Core::~Core() {
  closing_ = true;
  source_.reset();
  const absl::Status closed = absl::CancelledError("the store is being closed");
  for (auto& [name, server] : servers_) server->one.Close(closed);
  for (auto& server : unused_) server->one.Close(closed);
  for (std::vector<AskedGroup*>* list : {&homeless_, &paused_}) {
    for (AskedGroup* asked : std::exchange(*list, {})) groups_.End(*asked, closed, SteadyNow());
  }
}

std::uint16_t RedisClusterStore::Core::SlotOfClaim(const RemoteClaim& claim) const {
  name_.clear();
  AppendKeyName(keys_, KindOf(claim.limit->limit(), claim.block), claim.key, &name_);
  return SlotOf(name_);
}

absl::Status RedisClusterStore::Core::Apply(RemoteGroup& group, Time deadline, Done done) {
  if (closing_) return absl::CancelledError("the store is being closed");
  AskedGroup* const asked = groups_.Free();
  if (asked == nullptr) return groups_.Refuse(groups_.full());
  groups_.Name(*asked, group);
  asked->slot = SlotOf(asked->claims.front().key);
  const bool together = std::ranges::all_of(
      asked->claims, [&](const ScriptClaim& claim) { return SlotOf(claim.key) == asked->slot; });
  if (!together) return absl::InvalidArgumentError("the keys of a group lie in several slots");
  const absl::Status entered = Enter(*asked);
  if (!entered.ok()) return groups_.Refuse(entered);
  groups_.Start(*asked, deadline, std::move(done));
  return absl::OkStatus();
}

// To the server that has its slot.
absl::Status RedisClusterStore::Core::Enter(AskedGroup& asked) {
  asked.asking = false;
  if (Server* const owner = owners_[asked.slot]) return owner->one.calls().Enter(asked);
  if (has_map_) return no_owner_;
  if (failures_ >= seeds_) return why_;
  asked.holder = this;
  homeless_.push_back(&asked);
  return absl::OkStatus();
}

void RedisClusterStore::Core::OnLate(AskedGroup& asked, Time now) {
  for (std::vector<AskedGroup*>* list : {&homeless_, &paused_}) std::erase(*list, &asked);
  groups_.End(asked, groups_.late(), now);
}

// Each of them leaves the list, whatever becomes of it.
void RedisClusterStore::Core::EnterAll(std::vector<AskedGroup*>& asked) {
  for (AskedGroup* each : std::exchange(asked, {})) {
    const absl::Status entered = Enter(*each);
    if (!entered.ok()) groups_.End(*each, groups_.Refuse(entered), SteadyNow());
  }
}

void RedisClusterStore::Core::Follow(Server& from, AskedGroup& asked, const Redirect& to,
                                     Time now) {
  ++asked.redirects;
  Count(to);
  const bool was_alone = asked.alone;
  asked.alone = asked.alone || to.kind != Redirect::Kind::kMoved;
  asked.asking = false;
  Server* next = &from;
  if (to.kind == Redirect::Kind::kTryAgain) {
    asked.hops = 0;  // it was led to the right one, where it has to wait
    // Others of the call may be why.
    if (was_alone) return Pause(asked, now);
  } else {
    next = Named(from, to);
    if (next == nullptr || ++asked.hops > Redirects::kMost) {
      return groups_.End(
          asked, absl::UnavailableError("the cluster's servers send it to one another"), now);
    }
    asked.asking = to.kind == Redirect::Kind::kAsk;
    if (next == &from) return Pause(asked, now);
  }
  const absl::Status entered = next->one.calls().Enter(asked);
  if (!entered.ok()) groups_.End(asked, groups_.Refuse(entered), now);
}

GiveBack* RedisClusterStore::Core::Follow(Server& from, const Redirect& to) {
  Count(to);
  if (to.kind == Redirect::Kind::kTryAgain) return &from.one.give_back();
  Server* const next = Named(from, to);
  return next == nullptr ? nullptr : &next->one.give_back();
}

// Where that leads. What it says of the slot is so from now on.
RedisClusterStore::Core::Server* RedisClusterStore::Core::Named(Server& from, const Redirect& to) {
  net::HostPort address = to.to;
  if (address.host.empty()) address.host = from.address.host;
  Server* const next = ServerAt(address);
  if (to.kind == Redirect::Kind::kMoved) {
    if (next != nullptr && owners_[to.slot] != next) {
      Give(to.slot, next);
      Tell();
    }
    source_->LookSoon();
  }
  return next;
}

void RedisClusterStore::Core::Pause(AskedGroup& asked, Time now) {
  asked.holder = this;
  asked.pauses_until = now + kPause * (1 << std::min(asked.redirects - 1, kMostDoublings));
  paused_.push_back(&asked);
  resume_.At(asked.pauses_until);
}

void RedisClusterStore::Core::Resume() {
  const Time now = SteadyNow();
  std::vector<AskedGroup*> due;
  Time next = Time::max();
  std::erase_if(paused_, [&](AskedGroup* asked) {
    if (asked->pauses_until <= now) return due.push_back(asked), true;
    next = std::min(next, asked->pauses_until);
    return false;
  });
  if (next < Time::max()) resume_.At(next);
  EnterAll(due);
}

// Null: there are too many.
RedisClusterStore::Core::Server* RedisClusterStore::Core::ServerAt(const net::HostPort& address) {
  const std::string name = ToString(address);
  auto found = servers_.find(name);
  if (found == servers_.end()) {
    if (servers_.size() >= kMostServers) return nullptr;
    found = servers_.emplace(name, std::make_unique<Server>(*this, address)).first;
  }
  found->second->named = SteadyNow();
  return found->second.get();
}

void RedisClusterStore::Core::Give(std::uint16_t slot, Server* owner) {
  if (owners_[slot] != nullptr) --owners_[slot]->slots;
  owners_[slot] = owner;
  if (owner != nullptr) ++owner->slots;
}

void RedisClusterStore::Core::OnMap(const std::vector<SlotRange>& map) {
  counters_.maps.Add();
  has_map_ = true;
  failures_ = 0;
  std::vector<Server*> owners(kSlotCount);
  for (const SlotRange& range : map) {
    std::fill(owners.begin() + range.first, owners.begin() + range.last + 1,
              ServerAt(range.primary));
  }
  for (std::size_t slot = 0; slot < kSlotCount; ++slot) {
    if (owners_[slot] != owners[slot]) Give(static_cast<std::uint16_t>(slot), owners[slot]);
  }
  for (auto& [name, server] : servers_) server->one.give_back().HandOver();
  DropUnused(SteadyNow());
  Tell();
  EnterAll(homeless_);
}

void RedisClusterStore::Core::OnNoMap(const absl::Status& why) {
  counters_.no_maps.Add();
  ++failures_;
  if (has_map_) return;
  why_ = absl::UnavailableError(absl::StrCat("no seed tells where the slots are: ", why.message()));
  if (failures_ < seeds_) return;
  Tell();
  EnterAll(homeless_);
}

// One of those that have slots: the others may not be of the cluster any more.
ScriptLink* RedisClusterStore::Core::NextToAsk() {
  std::vector<ScriptLink*> usable;
  std::vector<ScriptLink*> others;
  for (auto& [name, server] : servers_) {
    ScriptLink& link = server->one.link();
    if (link.usable()) (server->slots > 0 ? usable : others).push_back(&link);
  }
  if (usable.empty()) usable.swap(others);
  return usable.empty() ? nullptr : usable[next_to_ask_++ % usable.size()];
}

// They may be who called us.
void RedisClusterStore::Core::DropUnused(Time now) {
  for (auto named = servers_.begin(); named != servers_.end();) {
    std::unique_ptr<Server>& server = named->second;
    if (server->slots > 0 || now - server->named < keep_unused_) {
      ++named;
      continue;
    }
    unused_.push_back(std::move(server));
    named = servers_.erase(named);
  }
  if (!unused_.empty()) bury_.Ask();
}

void RedisClusterStore::Core::Bury() {
  for (std::unique_ptr<Server>& server : std::exchange(unused_, {})) {
    server->one.Close(absl::UnavailableError("the server is in the cluster no more"));
    server->one.give_back().HandOver();
    server.reset();
  }
}

GiveBack* RedisClusterStore::Core::GiveBackFor(const RemoteClaim& claim) {
  if (claim.receipt.units == 0) return nullptr;
  if (Server* const owner = owners_[SlotOfClaim(claim)]) return &owner->one.give_back();
  // It waits there for one that has the slot.
  return servers_.empty() ? nullptr : &servers_.begin()->second->one.give_back();
}

void RedisClusterStore::Core::Undo(const RemoteClaim& claim, std::uint64_t units) {
  if (GiveBack* const to = GiveBackFor(claim)) to->Undo(claim, units);
}

void RedisClusterStore::Core::Renew(const RemoteClaim& claim) {
  if (GiveBack* const to = GiveBackFor(claim)) to->Renew(claim);
}

void RedisClusterStore::Core::OnServer(Server& server) {
  server.known = true;
  if (!server.one.health().up) source_->LookSoon();
  Tell();
}

// As far as it is known.
RedisHealth RedisClusterStore::Core::HealthNow() const {
  RedisHealth health{.up = missing_ == 0, .since = clock_.Read().wall};
  if (!has_map_) {
    health.why = std::string(why_.message());
    return health;
  }
  std::size_t primaries = 0;
  std::string why = "no server has them";
  for (const auto& [name, server] : servers_) {
    if (server->slots == 0) continue;
    ++primaries;
    const RedisHealth of = server->one.health();
    if (of.up) continue;
    why = of.why;
    health.breaker = of.breaker;
  }
  health.server =
      absl::StrCat("a cluster of ", primaries, primaries == 1 ? " primary" : " primaries");
  if (!health.up) {
    health.why = absl::StrCat("nobody decides on ", missing_, " of ", kSlotCount, " slots: ", why);
  }
  return health;
}

void RedisClusterStore::Core::Tell() {
  std::size_t decided = 0;
  std::size_t primaries = 0;
  bool all_known = true;
  for (const auto& [name, server] : servers_) {
    if (server->slots == 0) continue;
    ++primaries;
    all_known = all_known && server->known;
    if (server->one.health().up) decided += server->slots;
  }
  missing_ = kSlotCount - decided;
  counters_.primaries.Set(primaries);
  counters_.slots_missing.Set(missing_);
  if (has_map_ && !all_known) return;  // soon
  RedisHealth health = HealthNow();
  const bool changed = !std::exchange(told_, true) || health.up != health_.up;
  if (!changed) health.since = health_.since;
  {
    const std::lock_guard lock(mutex_);
    health_ = health;
  }
  if (changed && on_health_) on_health_(health);
}

RedisClusterStore::RedisClusterStore(net::EventLoop& loop, const Clock& clock,
                                     RedisClusterOptions options)
    : core_(std::make_unique<Core>(loop, clock, std::move(options))) {}

RedisClusterStore::~RedisClusterStore() = default;

std::uint32_t RedisClusterStore::PartOf(const RemoteClaim& claim) const {
  return core_->SlotOfClaim(claim);
}
absl::Status RedisClusterStore::Apply(RemoteGroup& group, Time deadline, Done done) {
  return core_->Apply(group, deadline, std::move(done));
}
void RedisClusterStore::Undo(const RemoteClaim& claim, std::uint64_t units) {
  core_->Undo(claim, units);
}
void RedisClusterStore::Renew(const RemoteClaim& claim) { core_->Renew(claim); }
const RedisCounters& RedisClusterStore::counters() const { return core_->counters(); }
RedisHealth RedisClusterStore::health() const { return core_->health(); }

}  // namespace sluice::redis
