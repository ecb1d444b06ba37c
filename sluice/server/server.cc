#include "sluice/server/server.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/admin/admin_port.h"
#include "sluice/base/clock.h"
#include "sluice/base/line_writer.h"
#include "sluice/base/log.h"
#include "sluice/limiter/limiter.h"
#include "sluice/net/event_loops.h"
#include "sluice/server/certificates.h"
#include "sluice/server/gateway_options.h"
#include "sluice/server/housekeeping.h"
#include "sluice/server/process_metrics.h"
#include "sluice/server/redis_stores.h"
#include "sluice/store/memory/memory_store.h"
#include "sluice/store/memory/snapshot_lock.h"
#include "sluice/telemetry/metrics.h"
#include "sluice/transport/gateway/gateway.h"

namespace sluice {
namespace {

MemoryStoreOptions StoreOptions(const config::Config& config) {
  return {.max_keys = config.memory.max_keys,
          .outside_bytes = config.bounds.outside_bytes,
          .max_slots = static_cast<std::uint32_t>(config.bounds.slots),
          .snapshot = config.memory.snapshot,
          .hash_key = std::nullopt};
}

// How soon a renewed certificate is served. A look reads a few small files.
constexpr Duration kCertificatesEvery = std::chrono::seconds{2};

// After the drain, for slots that are to come back in the shared store.
constexpr Duration kGiveBackWithin = std::chrono::milliseconds{500};

net::HostPort HostPortOf(const config::Endpoint& endpoint) {
  return {.host = endpoint.host, .port = endpoint.port};
}

// What to do about a snapshot that can't be used.
absl::Status WithWayOut(const absl::Status& status) {
  if (!absl::IsDataLoss(status) && !absl::IsFailedPrecondition(status)) return status;
  return {status.code(),
          absl::StrCat(status.message(), "; move the file away to start with empty counters")};
}

// One line each, so that a reload that fails tells everything, in either format of the log.
void LogDiagnostics(const config::Diagnostics& diagnostics) {
  for (const config::Diagnostic& told : diagnostics.Sorted()) {
    const bool error = told.severity == config::Severity::kError;
    log::Write(
        error ? log::Level::kError : log::Level::kWarning, "configuration",
        {{"at", diagnostics.PlaceOf(told.location)}, {"what", told.message}, {"hint", told.hint}});
  }
}

}  // namespace

class Server::Parts {
 public:
  Parts(config::Config config, Loader loader, gateway::Resolver resolve)
      : config_(std::move(config)),
        loader_(std::move(loader)),
        resolve_(std::move(resolve)),
        loops_(config_.threads) {}
  ~Parts() { (void)Stop(); }

  absl::Status Start(const std::stop_token& stop);
  // Whether all doors are open.
  [[nodiscard]] bool started() const { return started_; }
  bool Reload(std::stop_token stop);
  Duration Leave();
  bool Stop();
  std::string gateway_address() const;
  std::string admin_address() const;

 private:
  absl::Status OpenStore();
  absl::Status OpenAccessLog();
  const gateway::AccessLog* gateway_log() const { return access_log_ ? &*access_log_ : nullptr; }
  absl::StatusOr<std::shared_ptr<const ActiveRules>> Compile(std::shared_ptr<const RuleSet> rules);
  Limiter::Parts LimiterParts(const net::EventLoop& loop, ThreadMetrics& metrics);
  absl::Status StartDoors(const std::stop_token& stop);
  absl::Status StartGateway(const std::stop_token& stop);
  void StartHousekeeping();
  absl::Status Use(std::shared_ptr<const RuleSet> rules);
  absl::Status Use(const config::Config& next, std::stop_token stop);
  void SetReloading(bool reloading);
  absl::StatusOr<std::unique_ptr<Certificates>> CertificatesFor(config::GatewaySettings next) const;
  void LookAtCertificates();
  void HandOnCertificates();
  void TellOfCertificates() const;
  void WarnOfChangesForTheNextStart(const config::Config& next) const;
  void WriteMetrics(std::string& out) const;
  bool WriteSnapshot() const;
  std::shared_ptr<const ActiveRules> active() const {
    const std::lock_guard lock(mutex_);
    return active_;
  }

  config::Config config_;
  const Loader loader_;
  const gateway::Resolver resolve_;
  SystemClock clock_;
  std::optional<SnapshotLock> snapshot_lock_;  // longer than the store writes
  std::unique_ptr<MemoryStore> store_;
  Metrics metrics_;

  mutable std::mutex mutex_;  // guards active_ and reloads_, which the admin port reads
  std::shared_ptr<const ActiveRules> active_;
  ReloadCounts reloads_;
  std::uint64_t generation_ = 1;
  std::atomic<bool> ready_ = false;
  bool started_ = false;
  bool stopped_ = false;

  net::EventLoops loops_;
  std::unique_ptr<RedisStores> redis_;              // null: all is counted in memory
  std::vector<ThreadMetrics*> thread_metrics_;      // by loop
  std::vector<std::unique_ptr<Limiter>> limiters_;  // by loop
  std::mutex changing_;                         // held by whoever changes what the gateway goes by:
  bool reloading_ = false;                      // nobody else changes it meanwhile
  gateway::GatewayOptions options_;             // in force
  std::unique_ptr<Certificates> certificates_;  // null without a gateway
  std::unique_ptr<LineWriter> access_lines_;
  std::optional<gateway::AccessLog> access_log_;
  std::unique_ptr<gateway::Gateway> gateway_;
  std::unique_ptr<admin::AdminPort> admin_;
  std::unique_ptr<Housekeeping> housekeeping_;
};

absl::Status Server::Parts::Start(const std::stop_token& stop) {
  if (absl::Status opened = OpenAccessLog(); !opened.ok()) return opened;
  if (absl::Status opened = OpenStore(); !opened.ok()) return opened;
  auto active = Compile(config_.rules);
  if (!active.ok()) return active.status();
  active_ = *std::move(active);
  metrics_.Show(active_->rules());
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    ThreadMetrics& metrics = metrics_.AddThread();
    metrics.Bind(active_->rules());
    thread_metrics_.push_back(&metrics);
    limiters_.push_back(std::make_unique<Limiter>(LimiterParts(loops_[i], metrics), active_));
  }
  loops_.Start();
  if (redis_ != nullptr) {
    redis_->TellOthers(active_->rules());
    redis_->WaitUntilUp(stop);
  }
  if (stop.stop_requested()) return absl::OkStatus();
  if (absl::Status doors = StartDoors(stop); !doors.ok()) return doors;
  StartHousekeeping();
  started_ = true;
  ready_ = true;
  return absl::OkStatus();
}

absl::Status Server::Parts::OpenAccessLog() {
  if (!config_.gateway || !config_.gateway->access_log.on) return absl::OkStatus();
  const config::AccessLogSettings& settings = config_.gateway->access_log;
  auto lines = LineWriter::Open(
      {.path = settings.file, .rings = loops_.size(), .ring_bytes = settings.buffer_bytes});
  if (!lines.ok()) return lines.status();
  access_lines_ = *std::move(lines);
  const bool json = settings.form == config::AccessForm::kJson;
  access_log_.emplace(
      gateway::AccessLog{.lines = *access_lines_,
                         .form = json ? gateway::AccessForm::kJson : gateway::AccessForm::kCombined,
                         .query = settings.query});
  return absl::OkStatus();
}

absl::Status Server::Parts::OpenStore() {
  const std::string& snapshot = config_.memory.snapshot;
  if (!snapshot.empty()) {
    auto lock = SnapshotLock::Take(snapshot);
    if (!lock.ok()) return lock.status();
    snapshot_lock_ = *std::move(lock);
  }
  auto store = MemoryStore::Open(StoreOptions(config_), clock_.Read());
  if (!store.ok()) return WithWayOut(store.status());
  store_ = *std::move(store);
  if (config_.redis) {
    auto redis = RedisStores::Open(loops_, clock_, config_);
    if (!redis.ok()) return redis.status();
    redis_ = *std::move(redis);
  }
  if (!snapshot.empty()) {
    log::Info("snapshot read",
              {{"file", snapshot}, {"keys", store_->Stats(clock_.Read()).table_slots_occupied}});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const ActiveRules>> Server::Parts::Compile(
    std::shared_ptr<const RuleSet> rules) {
  const RemoteStore* const remote = redis_ == nullptr ? nullptr : &redis_->of(loops_[0]);
  return ActiveRules::Make(std::move(rules), *store_, clock_, remote);
}

Limiter::Parts Server::Parts::LimiterParts(const net::EventLoop& loop, ThreadMetrics& metrics) {
  Limiter::Parts parts{
      .store = *store_, .hash_key = store_->hash_key(), .clock = clock_, .observer = &metrics};
  if (redis_ == nullptr) return parts;
  parts.remote = &redis_->of(loop);
  parts.remote_deadline = redis_->deadline();
  parts.denials = redis_->denials();
  parts.leases = redis_->leases(loop);
  return parts;
}

absl::Status Server::Parts::StartGateway(const std::stop_token& stop) {
  auto certificates = Certificates::Load(*config_.gateway);
  if (!certificates.ok()) return certificates.status();
  certificates_ = *std::move(certificates);
  TellOfCertificates();
  std::vector<Limiter*> limiters;
  for (const auto& limiter : limiters_) limiters.push_back(limiter.get());
  options_ = GatewayOptionsOf(config_, certificates_->contexts(), gateway_log());
  auto gateway = gateway::Gateway::Start(loops_, limiters, options_, resolve_, stop);
  if (!gateway.ok()) return gateway.status();
  gateway_ = *std::move(gateway);
  log::Info("listening",
            {{"door", "gateway"}, {"address", gateway_address()}, {"loops", loops_.size()}});
  return absl::OkStatus();
}

absl::Status Server::Parts::StartDoors(const std::stop_token& stop) {
  if (config_.gateway) {
    if (absl::Status started = StartGateway(stop); !started.ok()) return started;
  }
  if (config_.admin) {
    admin::AdminPort::Views views{.ready = [this] { return ready_.load(); },
                                  .write_metrics = [this](std::string& out) { WriteMetrics(out); },
                                  .rules =
                                      [this] {
                                        const auto rules = active();
                                        return std::shared_ptr<const RuleSet>(rules,
                                                                              &rules->rules());
                                      }};
    if (redis_ != nullptr) views.shared_store = [this] { return redis_->StateJson(); };
    auto port = admin::AdminPort::Start(HostPortOf(config_.admin->listen), std::move(views));
    if (!port.ok()) return port.status();
    admin_ = *std::move(port);
    log::Info("listening", {{"door", "admin"}, {"address", admin_address()}});
  }
  return absl::OkStatus();
}

void Server::Parts::StartHousekeeping() {
  std::vector<Housekeeping::Chore> chores;
  chores.push_back({.every = std::chrono::seconds{1}, .work = [this] { clock_.RefreshOffset(); }});
  if (!config_.memory.snapshot.empty()) {
    chores.push_back(
        {.every = config_.memory.snapshot_every, .work = [this] { (void)WriteSnapshot(); }});
  }
  if (certificates_ != nullptr) {
    chores.push_back({.every = kCertificatesEvery, .work = [this] { LookAtCertificates(); }});
    chores.push_back({.every = std::chrono::hours{24}, .work = [this] {
                        const std::lock_guard lock(changing_);
                        certificates_->WarnOfExpiry(clock_.Read().wall);
                      }});
  }
  housekeeping_ = std::make_unique<Housekeeping>(std::move(chores));
}

absl::Status Server::Parts::Use(std::shared_ptr<const RuleSet> rules) {
  auto made = Compile(std::move(rules));
  if (!made.ok()) return made.status();
  const std::shared_ptr<const ActiveRules> next = *std::move(made);
  loops_.OnEach([&](net::EventLoop& loop) {
    thread_metrics_[loop.index()]->Bind(next->rules());
    limiters_[loop.index()]->Replace(next);
  });
  metrics_.Show(next->rules());
  if (redis_ != nullptr) redis_->TellOthers(next->rules());
  const std::lock_guard lock(mutex_);
  active_ = next;
  return absl::OkStatus();
}

// All of it or nothing. What may take long, names above all, comes first and without the lock;
// nobody else changes what it goes by, for a reload is under way.
absl::Status Server::Parts::Use(const config::Config& next, std::stop_token stop) {
  // Whether there is a gateway at all is for the next start.
  if (gateway_ == nullptr || !next.gateway) return Use(next.rules);
  auto loaded = CertificatesFor(*next.gateway);
  if (!loaded.ok()) return loaded.status();
  const std::unique_ptr<Certificates>& other = *loaded;
  gateway::GatewayOptions options =
      GatewayOptionsOf(next, (other != nullptr ? other : certificates_)->contexts(), gateway_log());
  auto prepared = gateway_->Prepare(options, std::move(stop));
  if (!prepared.ok()) return prepared.status();
  const std::lock_guard lock(changing_);
  if (absl::Status used = Use(next.rules); !used.ok()) return used;
  gateway_->Use(*std::move(prepared));
  config_.gateway->drain = next.gateway->drain;
  config_.gateway->drain_delay = next.gateway->drain_delay;
  options.tls = options_.tls;  // which only HandOnCertificates() changes
  options_ = std::move(options);
  if (other != nullptr) {
    certificates_->Become(std::move(*other));
    HandOnCertificates();
  }
  return absl::OkStatus();
}

// Null when those in use will do: the same settings, and files that hold the same. Whether clients
// are spoken to by TLS at all is for the next start: a port that changes its protocol under its
// clients' feet helps nobody.
absl::StatusOr<std::unique_ptr<Certificates>> Server::Parts::CertificatesFor(
    config::GatewaySettings next) const {
  if (next.tls.has_value() != certificates_->tls().has_value()) next.tls = certificates_->tls();
  if (certificates_->AreFor(next) && !certificates_->Changed()) return nullptr;
  return Certificates::Load(next);
}

// Not during a reload, which takes a look itself.
void Server::Parts::LookAtCertificates() {
  const std::lock_guard lock(changing_);
  if (ready_ && !reloading_ && certificates_->Look()) HandOnCertificates();
}

void Server::Parts::SetReloading(bool reloading) {
  const std::lock_guard lock(changing_);
  reloading_ = reloading;
}

// To the gateway, which keeps what it has on connections that are open.
void Server::Parts::HandOnCertificates() {
  TellOfCertificates();
  const TlsContexts& now = certificates_->contexts();
  if (now.clients != options_.tls) gateway_->ReplaceTls(now.clients);
  options_.tls = now.clients;
  bool changed = false;
  for (gateway::UpstreamOptions& upstream : options_.upstreams) {
    changed |= upstream.tls != nullptr && upstream.tls != now.upstreams;
    if (upstream.tls != nullptr) upstream.tls = now.upstreams;
  }
  if (!changed) return;
  auto prepared = gateway_->Prepare(options_);
  if (prepared.ok()) {
    gateway_->Use(*std::move(prepared));
  } else {  // not with upstreams that are in force: none is looked up
    log::Error("upstreams keep their old certificates",
               {{"why", std::string(prepared.status().message())}});
  }
}

void Server::Parts::TellOfCertificates() const {
  certificates_->LogAll();
  certificates_->WarnOfExpiry(clock_.Read().wall);
}

bool Server::Parts::Reload(std::stop_token stop) {
  if (access_lines_ != nullptr) access_lines_->Reopen();
  const std::uint64_t next = generation_ + 1;
  config::LoadResult loaded = loader_(next);
  absl::Status used = absl::OkStatus();
  if (loaded.config) {
    SetReloading(true);
    used = Use(*loaded.config, std::move(stop));
    SetReloading(false);
  }
  const bool done = loaded.config.has_value() && used.ok();
  {
    const std::lock_guard lock(mutex_);
    ++(done ? reloads_.succeeded : reloads_.failed);
  }
  LogDiagnostics(loaded.diagnostics);
  if (!done) {
    log::Error("reload failed; the old configuration stays in force",
               {{"generation", generation_},
                {"errors", loaded.diagnostics.errors()},
                {"why", used.ok() ? "the configuration has errors" : std::string(used.message())}});
    return false;
  }
  generation_ = next;
  WarnOfChangesForTheNextStart(*loaded.config);
  log::Configure(loaded.config->log.level, loaded.config->log.format);
  log::Info("reloaded", {{"generation", generation_},
                         {"rules", loaded.config->rules->rules().size()},
                         {"warnings", loaded.diagnostics.warnings()}});
  return true;
}

void Server::Parts::WarnOfChangesForTheNextStart(const config::Config& next) const {
  const std::pair<const char*, bool> settings[] = {
      {"gateway", next.gateway.has_value() != config_.gateway.has_value()},
      {"gateway.listen",
       next.gateway && config_.gateway && next.gateway->listen != config_.gateway->listen},
      {"gateway.tls", next.gateway && config_.gateway &&
                          next.gateway->tls.has_value() != config_.gateway->tls.has_value()},
      {"gateway.access_log",
       next.gateway && config_.gateway && next.gateway->access_log != config_.gateway->access_log},
      {"admin", next.admin != config_.admin},
      {"store.memory", next.memory != config_.memory},
      {"store.redis", next.redis != config_.redis},
      {"limits.connections", next.bounds.connections != config_.bounds.connections},
      {"limits.connections_per_client",
       next.bounds.connections_per_client != config_.bounds.connections_per_client},
      {"limits.outside_bytes", next.bounds.outside_bytes != config_.bounds.outside_bytes},
      {"limits.slots", next.bounds.slots != config_.bounds.slots},
      {"limits.waiting_for_store",
       next.bounds.waiting_for_store != config_.bounds.waiting_for_store},
      {"limits.remembered_denials",
       next.bounds.remembered_denials != config_.bounds.remembered_denials},
      {"limits.leased_keys", next.bounds.leased_keys != config_.bounds.leased_keys},
      {"threads", next.threads != config_.threads},
      {"node.name", next.node_name != config_.node_name}};
  for (const auto& [name, changed] : settings) {
    if (changed)
      log::Warning("changed setting takes effect at the next start", {{"setting", name}});
  }
}

void Server::Parts::WriteMetrics(std::string& out) const {
  metrics_.Write(out);
  WriteStoreMetrics(store_->Stats(clock_.Read()), out);
  if (redis_ != nullptr) redis_->WriteMetrics(out);
  ReloadCounts reloads;
  std::uint64_t generation = 0;
  {
    const std::lock_guard lock(mutex_);
    reloads = reloads_;
    generation = active_->rules().generation();
  }
  WriteServerMetrics(reloads, generation, !ready_.load(), config_.node_name, out);
  if (access_lines_ != nullptr) WriteAccessLogMetrics(*access_lines_, out);
  if (gateway_ != nullptr) WriteGatewayMetrics(gateway_->counters(), out);
  if (certificates_ != nullptr) certificates_->WriteMetrics(out);
}

bool Server::Parts::WriteSnapshot() const {
  const std::string& path = config_.memory.snapshot;
  const absl::Status written = store_->WriteSnapshot(path, clock_.Read());
  if (!written.ok()) {
    log::Error("snapshot not written", {{"why", std::string(written.message())}});
  }
  return written.ok();
}

Duration Server::Parts::Leave() {
  ready_ = false;
  if (gateway_ == nullptr) return Duration{0};
  gateway_->Leave();
  return config_.gateway->drain_delay;
}

bool Server::Parts::Stop() {
  if (stopped_) return true;
  stopped_ = true;
  {
    const std::lock_guard lock(changing_);  // the gateway is changed no more
    ready_ = false;
  }
  if (gateway_ != nullptr) {
    log::Info("draining", {{"door", "gateway"}, {"connections", gateway_->counters().connections}});
    gateway_->Drain(config_.gateway->drain);
  }
  housekeeping_.reset();
  admin_.reset();
  if (redis_ != nullptr) redis_->Close(kGiveBackWithin);
  loops_.Stop();
  gateway_.reset();
  access_lines_.reset();  // writes what is left
  // A start that failed has counted nothing.
  return !started_ || config_.memory.snapshot.empty() || WriteSnapshot();
}

std::string Server::Parts::gateway_address() const {
  return gateway_ == nullptr ? "" : net::ToString(gateway_->endpoint());
}

std::string Server::Parts::admin_address() const {
  return admin_ == nullptr ? "" : net::ToString(admin_->endpoint());
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Server::~Server() = default;

absl::StatusOr<std::unique_ptr<Server>> Server::Start(config::Config config, Loader reload,
                                                      gateway::Resolver resolve,
                                                      const std::stop_token& stop) {
  auto parts = std::make_unique<Parts>(std::move(config), std::move(reload), std::move(resolve));
  absl::Status started = parts->Start(stop);
  if (!parts->started()) {  // else its doors were open, and what was counted is to be kept
    if (stop.stop_requested()) return absl::CancelledError("stopped while it was starting");
    if (!started.ok()) return started;
  }
  return std::unique_ptr<Server>(new Server(std::move(parts)));
}

bool Server::Reload(std::stop_token stop) { return parts_->Reload(std::move(stop)); }
Duration Server::Leave() { return parts_->Leave(); }
bool Server::Stop() { return parts_->Stop(); }
std::string Server::gateway_address() const { return parts_->gateway_address(); }
std::string Server::admin_address() const { return parts_->admin_address(); }

}  // namespace sluice
