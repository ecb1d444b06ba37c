#include "sluice/server/redis_stores.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "sluice/base/hash.h"
#include "sluice/base/log.h"
#include "sluice/net/http1_answer.h"
#include "sluice/net/redis_sentinels.h"
#include "sluice/net/tls_context.h"
#include "sluice/server/certificates.h"
#include "sluice/store/redis/redis_cluster_store.h"
#include "sluice/telemetry/prometheus.h"

namespace sluice {
namespace {

// Of servers by address, of which a cluster has other ones in time.
constexpr std::size_t kMostToldOf = 1024;

// An attempt that began while nothing came through holds up the next one: with the wait between two
// of them it must be less than the second in which we promise to count together again. Each of its
// few round trips may take as long as a decision.
Duration ConnectTimeout(Duration deadline) {
  return std::max<Duration>(std::chrono::milliseconds{300}, 4 * deadline);
}

std::vector<net::HostPort> NodesOf(const std::vector<config::Endpoint>& endpoints) {
  std::vector<net::HostPort> nodes;
  for (const config::Endpoint& node : endpoints) nodes.push_back({node.host, node.port});
  return nodes;
}

// For the log; `found` is what the sentinels say. No password is in it.
std::string AddressOf(const config::RedisSettings& settings, std::string_view found) {
  if (settings.sentinel) {
    return absl::StrCat(settings.sentinel->master, found.empty() ? "" : " at ",
                        absl::string_view(found.data(), found.size()));
  }
  if (!settings.cluster.empty()) {
    return absl::StrCat(ToString(NodesOf(settings.cluster).front()),
                        " and the rest of its cluster");
  }
  const config::RedisUrl& url = settings.url;
  return url.unix_socket.empty() ? absl::StrCat(url.host, ":", url.port) : url.unix_socket;
}

std::string InWords(WallTime at) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ",
                          absl::FromUnixNanos(at.time_since_epoch().count()), absl::UTCTimeZone());
}

absl::StatusOr<net::RedisConnectionOptions> ConnectionOptions(const config::RedisSettings& settings,
                                                              std::string_view node) {
  net::RedisConnectionOptions options{
      .address = {.host = settings.url.host, .port = settings.url.port},
      .unix_socket = settings.url.unix_socket,
      .user = settings.url.user,
      .password = settings.url.password,
      .database = settings.url.database,
      .client_name = node.empty() ? "sluice" : "sluice-" + std::string(node)};
  options.connect_timeout = ConnectTimeout(settings.deadline);
  if (settings.tls) {
    auto context = net::TlsClientContext::Load(ClientTlsOptions(*settings.tls));
    if (!context.ok()) return context.status();
    options.tls = *std::move(context);
  }
  return options;
}

// Those of this loop, which its store and the channel share.
void FindBySentinels(net::EventLoop& loop, const config::SentinelSettings& settings,
                     net::RedisConnectionOptions& connection) {
  net::RedisSentinelsOptions options{.master = settings.master,
                                     .nodes = NodesOf(settings.nodes),
                                     .user = settings.user,
                                     .password = settings.password,
                                     .tls = connection.tls,
                                     .connect_timeout = connection.connect_timeout};
  connection.primary = true;
  connection.find_address =
      net::RedisSentinels::Finder(std::make_shared<net::RedisSentinels>(loop, std::move(options)));
}

redis::KeyOptions KeyOptionsOf(const config::RedisSettings& settings, const HashKey* hash_key) {
  return {
      .prefix = settings.prefix, .hash_identities = settings.hash_identities, .hash_key = hash_key};
}

}  // namespace

RedisStores::RedisStores(net::EventLoops& loops, const config::Config& config)
    : loops_(loops), settings_(*config.redis), health_(loops.size()) {
  if (config.bounds.remembered_denials > 0) denials_.emplace(config.bounds.remembered_denials);
  if (settings_.hash_key) {
    std::array<std::uint8_t, 32> secret{};  // SipHash takes the first half
    std::copy(settings_.hash_key->begin(), settings_.hash_key->end(), secret.begin());
    hash_key_.emplace(HashKind::kSipHash13, secret);
  }
}

absl::StatusOr<std::unique_ptr<RedisStores>> RedisStores::Open(net::EventLoops& loops,
                                                               const Clock& clock,
                                                               const config::Config& config) {
  const config::RedisSettings& settings = *config.redis;
  auto connection = ConnectionOptions(settings, config.node_name);
  if (!connection.ok()) return connection.status();
  const std::uint64_t waiting = (config.bounds.waiting_for_store + loops.size() - 1) / loops.size();
  std::unique_ptr<RedisStores> stores(new RedisStores(loops, config));
  stores->state_.since = clock.Read().wall;
  const HashKey* hash_key = stores->hash_key_ ? &*stores->hash_key_ : nullptr;
  // From the last to the first, whose connection is the channel's, too.
  stores->stores_.resize(loops.size());
  for (std::size_t i = loops.size(); i-- > 0;) {
    if (settings.sentinel) FindBySentinels(loops[i], *settings.sentinel, *connection);
    redis::RedisStoreOptions options{.connection = *connection,
                                     .keys = KeyOptionsOf(settings, hash_key)};
    options.max_waiting = waiting;
    options.breaker.probe_deadline = settings.deadline;
    options.on_health = [self = stores.get(), i](const redis::RedisHealth& health) {
      self->Note(i, health);
    };
    if (i == 0) {  // one of them tells enough
      options.on_report = [self = stores.get()](const redis::ServerReport& report) {
        self->Tell(report);
      };
    }
    stores->OpenOne(loops[i], clock, std::move(options));
  }
  const std::uint64_t leased_keys = (config.bounds.leased_keys + loops.size() - 1) / loops.size();
  for (std::size_t i = 0; i < loops.size() && leased_keys > 0; ++i) {
    stores->loops_leases_.push_back(
        std::make_unique<LoopLeases>(loops[i], clock, *stores->stores_[i].front, leased_keys));
  }
  stores->channel_ =
      std::make_unique<NodeChannel>(loops[0], clock, stores->denials(),
                                    redis::ChannelOptions{.connection = *std::move(connection),
                                                          .seeds = NodesOf(settings.cluster),
                                                          .prefix = settings.prefix,
                                                          .node = config.node_name});
  return stores;
}

RedisStores::LoopLeases::LoopLeases(net::EventLoop& loop, const Clock& its_clock,
                                    RemoteStore& store, std::size_t keys)
    : clock(its_clock),
      timer(loop.timers()),
      leases(store, its_clock, {.keys = keys, .wake = [this](Time at) { WakeAt(at); }}) {}

void RedisStores::LoopLeases::WakeAt(Time at) {
  timer.Start(at - clock.Read().steady, [this](bool come) {
    if (come) leases.OnTime(clock.Read().steady);
  });
}

void RedisStores::OpenOne(net::EventLoop& loop, const Clock& clock,
                          redis::RedisStoreOptions options) {
  LoopStore& store = stores_[loop.index()];
  if (settings_.cluster.empty()) {
    store.redis = std::make_unique<redis::RedisStore>(loop, clock, std::move(options));
    store.front = store.redis.get();
    return;
  }
  auto cluster = std::make_unique<redis::RedisClusterStore>(
      loop, clock,
      redis::RedisClusterOptions{.seeds = NodesOf(settings_.cluster), .store = std::move(options)});
  store.split = std::make_unique<SplitStore>(
      *cluster, [slots = cluster.get()](const RemoteClaim& claim) { return slots->PartOf(claim); });
  store.redis = std::move(cluster);
  store.front = store.split.get();
}

void RedisStores::Note(std::size_t loop, const redis::RedisHealth& health) {
  const std::lock_guard lock(mutex_);
  health_[loop] = health;
  const auto is_down = [](const std::optional<redis::RedisHealth>& of) { return of && !of->up; };
  const auto is_up = [](const std::optional<redis::RedisHealth>& of) { return of && of->up; };
  const auto down = std::find_if(health_.begin(), health_.end(), is_down);
  const bool all_up = std::all_of(health_.begin(), health_.end(), is_up);
  if (down == health_.end() && !all_up) return;  // not known yet
  if (told_ && all_up == state_.up) return;
  const Duration lasted = health.since - state_.since;
  const bool first = !std::exchange(told_, true);
  state_ = {.up = all_up,
            .since = health.since,
            .server = health.server,
            .why = all_up ? "" : (*down)->why};
  changed_.notify_all();
  const std::string address = AddressOf(settings_, health.server);
  if (!all_up) {
    log::Warning("shared store does not answer; failure modes decide",
                 {{"address", address}, {"why", state_.why}});
  } else if (first) {
    log::Info("shared store answers", {{"address", address}});
  } else {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(lasted).count();
    log::Info("shared store answers again", {{"address", address}, {"after_ms", ms}});
  }
}

void RedisStores::Tell(const redis::ServerReport& report) {
  if (told_of_servers_.size() >= kMostToldOf) told_of_servers_.clear();  // addresses come and go
  redis::ServerReport& told = told_of_servers_[settings_.cluster.empty() ? "" : report.server];
  if (report.facts == told.facts && report.warnings == told.warnings) return;
  told = report;
  const std::string address =
      settings_.cluster.empty() ? AddressOf(settings_, report.server) : report.server;
  log::Info("shared store", {{"address", address}, {"server", report.facts}});
  for (const std::string& warning : report.warnings) {
    log::Warning("shared store", {{"address", address}, {"what", warning}});
  }
}

bool RedisStores::WaitUntilUp(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto up = [this] { return state_.up; };
  if (changed_.wait_for(lock, stop, settings_.connect_wait, up)) return true;
  if (stop.stop_requested()) return false;
  log::Warning("doors open without the shared store; failure modes decide",
               {{"address", AddressOf(settings_, state_.server)},
                {"why", state_.why.empty() ? "no answer yet" : state_.why}});
  return false;
}

bool RedisStores::OwesAnything() const {
  const auto owes = [](const LoopStore& store) {
    return store.redis->counters().undos_waiting.value() > 0;
  };
  const auto asks = [](const auto& of_loop) {
    return of_loop->leases.counters().asking.value() > 0;
  };
  return std::any_of(loops_leases_.begin(), loops_leases_.end(), asks) ||
         std::any_of(stores_.begin(), stores_.end(), owes);
}

void RedisStores::Close(Duration patience) {
  if (stores_.empty()) return;
  const auto end = std::chrono::steady_clock::now() + patience;
  loops_.OnEach([this](net::EventLoop& loop) {
    if (Leases* const held = leases(loop)) held->Close();
  });
  while (OwesAnything() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  loops_.OnEach([this](net::EventLoop& loop) {
    LoopStore& store = stores_[loop.index()];
    store.redis.reset();  // what is under way ends with it
    store.split.reset();
    if (!loops_leases_.empty()) loops_leases_[loop.index()].reset();
    if (loop.index() == 0) channel_.reset();
  });
  loops_leases_.clear();
  stores_.clear();
}

RedisStores::State RedisStores::state() const {
  State now;
  {
    const std::lock_guard lock(mutex_);
    now = state_;
  }
  // As of now: the server's words may have changed since it went away, and after a failover one
  // loop is there before another.
  std::set<std::string> servers;
  for (const auto& store : stores_) {
    const redis::RedisHealth health = store.redis->health();
    if (!now.up && !health.up && !health.why.empty()) now.why = health.why;
    servers.insert(health.server);
  }
  now.server = absl::StrJoin(servers, ", ");
  return now;
}

std::string RedisStores::StateJson() const {
  const State now = state();
  std::string json = absl::StrCat(R"({"up":)", now.up ? "true" : "false", R"(,"since":")",
                                  InWords(now.since), "\"");
  if (now.up && !now.server.empty()) {
    json.append(R"(,"server":)");
    net::AppendJsonString(now.server, &json);
  }
  if (!now.up) {
    json.append(R"(,"decides":"failure modes","why":)");
    net::AppendJsonString(now.why.empty() ? "no answer yet" : now.why, &json);
  }
  json.push_back('}');
  return json;
}

void RedisStores::WriteMetrics(std::string& out) const {
  using redis::RedisCounters;
  const auto sum = [this](OneWriterCounter RedisCounters::*counter) {
    std::uint64_t total = 0;
    for (const auto& store : stores_) total += (store.redis->counters().*counter).value();
    return total;
  };
  const State now = state();
  PrometheusWriter writer(out);
  writer.Single("sluice_redis_up", "gauge",
                "1 while the shared store decides, 0 while failure modes do.", now.up ? 1 : 0);
  writer.Single(
      "sluice_redis_since_seconds", "gauge", "Since when that is so, in seconds since 1970.",
      static_cast<std::uint64_t>(
          std::chrono::floor<std::chrono::seconds>(now.since.time_since_epoch()).count()));
  const struct {
    const char* name;
    const char* type;
    const char* help;
    OneWriterCounter RedisCounters::*counter;
  } series[] = {
      {"sluice_redis_requests_total", "counter", "Requests whose claims were sent.",
       &RedisCounters::groups},
      {"sluice_redis_calls_total", "counter", "Calls of the script; one has up to 32 requests.",
       &RedisCounters::calls},
      {"sluice_redis_sent_again_total", "counter",
       "Requests sent once more: their state was one of other numbers.", &RedisCounters::again},
      {"sluice_redis_late_total", "counter", "Requests without an answer in time.",
       &RedisCounters::late},
      {"sluice_redis_refused_total", "counter", "Requests that could not be sent.",
       &RedisCounters::refused},
      {"sluice_redis_waiting", "gauge", "Requests that wait for an answer.",
       &RedisCounters::waiting},
      {"sluice_redis_damaged_total", "counter", "Impossible states, counted as absent.",
       &RedisCounters::damaged},
      {"sluice_redis_disagreements_total", "counter",
       "Answers of the script that the algorithms do not confirm.", &RedisCounters::disagreements},
      {"sluice_redis_connects_total", "counter", "Connections that became ready.",
       &RedisCounters::connects},
      {"sluice_redis_script_loads_total", "counter", "Times that the script was loaded.",
       &RedisCounters::script_loads},
      {"sluice_redis_undos_total", "counter", "Charges and slots given back.",
       &RedisCounters::undos},
      {"sluice_redis_undos_dropped_total", "counter", "Those that could not be given back.",
       &RedisCounters::undos_dropped},
      {"sluice_redis_undos_waiting", "gauge", "Those that are still to be given back.",
       &RedisCounters::undos_waiting},
      {"sluice_redis_renewals_total", "counter", "Slots held on.", &RedisCounters::renewals}};
  for (const auto& [name, type, help, counter] : series) {
    writer.Single(name, type, help, sum(counter));
  }
  writer.Family("sluice_redis_errors_total", "counter",
                "What the server answered in place of a decision, by kind.");
  for (std::size_t kind = 0; kind < redis::kServerErrors; ++kind) {
    std::uint64_t total = 0;
    for (const auto& store : stores_) total += store.redis->counters().errors[kind].value();
    writer.Sample({{"kind", NameOf(static_cast<redis::ServerError>(kind))}}, total);
  }
  WriteWaits(out);
  WriteLeases(out);
  if (!settings_.cluster.empty()) WriteCluster(out);
  channel_->WriteMetrics(out);
}

void RedisStores::WriteCluster(std::string& out) const {
  using redis::RedisCounters;
  constexpr std::array<std::string_view, redis::kRedirects> kKinds = {"moved", "ask", "tryagain"};
  PrometheusWriter writer(out);
  writer.Family("sluice_redis_redirects_total", "counter",
                "What a server of the cluster sent elsewhere, or back, by its word for it.");
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    std::uint64_t total = 0;
    for (const LoopStore& store : stores_) total += store.redis->counters().redirects[kind].value();
    writer.Sample({{"kind", kKinds[kind]}}, total);
  }
  std::uint64_t maps = 0;
  std::uint64_t no_maps = 0;
  std::uint64_t primaries = 0;
  std::uint64_t missing = 0;
  for (const LoopStore& store : stores_) {
    const RedisCounters& counters = store.redis->counters();
    maps += counters.maps.value();
    no_maps += counters.no_maps.value();
    primaries = std::max(primaries, counters.primaries.value());
    missing = std::max(missing, counters.slots_missing.value());
  }
  writer.Single("sluice_redis_maps_total", "counter", "Maps of slots that were read.", maps);
  writer.Single("sluice_redis_maps_failed_total", "counter", "Those that could not be.", no_maps);
  writer.Single("sluice_redis_primaries", "gauge", "Servers that have slots.", primaries);
  writer.Single("sluice_redis_slots_missing", "gauge", "Slots that no server decides on.", missing);
}

void RedisStores::WriteWaits(std::string& out) const {
  using redis::RedisHistogram;
  std::array<std::uint64_t, RedisHistogram::kBuckets> counts{};
  Duration sum{0};
  for (const auto& store : stores_) {
    const RedisHistogram& waits = store.redis->counters().waits;
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += waits[i];
    sum += waits.sum();
  }
  PrometheusWriter(out).Histogram(
      "sluice_redis_wait_seconds",
      "How long requests waited for the shared store, or until their failure modes decided.",
      RedisHistogram::kBounds, counts, sum);
}

void RedisStores::WriteLeases(std::string& out) const {
  const auto sum = [this](OneWriterCounter LeaseCounters::*counter) {
    std::uint64_t total = 0;
    for (const auto& of_loop : loops_leases_) {
      total += (of_loop->leases.counters().*counter).value();
    }
    return total;
  };
  PrometheusWriter writer(out);
  writer.Family("sluice_leases_total", "counter", "Leases that were asked for, by the answer.");
  writer.Sample({{"answer", "granted"}}, sum(&LeaseCounters::granted));
  writer.Sample({{"answer", "denied"}}, sum(&LeaseCounters::denied));
  writer.Sample({{"answer", "none"}}, sum(&LeaseCounters::unanswered));
  writer.Family("sluice_lease_units_total", "counter",
                "Units of leases: granted, taken by requests, put back by those that did not pass, "
                "returned to the store.");
  writer.Sample({{"what", "granted"}}, sum(&LeaseCounters::units));
  writer.Sample({{"what", "taken"}}, sum(&LeaseCounters::taken));
  writer.Sample({{"what", "put_back"}}, sum(&LeaseCounters::put_back));
  writer.Sample({{"what", "returned"}}, sum(&LeaseCounters::returned));
  writer.Single("sluice_leased_keys", "gauge", "Keys of which units are held.",
                sum(&LeaseCounters::keys));
}

}  // namespace sluice
