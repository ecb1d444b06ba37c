#include "sluice/transport/gateway/health_checks.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "sluice/base/log.h"
#include "sluice/net/await.h"
#include "sluice/net/http1_answer.h"
#include "sluice/net/http1_parser.h"
#include "sluice/transport/gateway/upstream_connection.h"

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;
using net::Http1Stream;
using net::Task;

constexpr Duration kFirstWithin = 1s;
constexpr std::size_t kSkippedBytes = std::size_t{64} * 1024;

}  // namespace

bool CheckedHealth::Note(bool passed) {
  if (passed == up_) {
    row_ = 0;
    return false;
  }
  if (++row_ < (up_ ? failures_ : successes_)) return false;
  up_ = passed;
  row_ = 0;
  return true;
}

// Of one upstream. Kept alive by the coroutine that runs in it.
class HealthChecks::Check {
 public:
  Check(net::EventLoop& loop, const GatewayOptions& options, std::shared_ptr<Upstream> upstream,
        std::shared_ptr<net::TlsPeer> peer, Tell tell, Random random)
      : loop_(loop),
        options_(options.health_check),
        head_{.max_bytes = options.header_bytes, .max_fields = options.header_fields},
        upstream_(std::move(upstream)),
        peer_(std::move(peer)),
        tell_(std::move(tell)),
        random_(std::move(random)),
        health_(options_.failures, options_.successes, upstream_->up.load()),
        timer_(loop.timers()),
        alarm_(*this, loop.deadlines()) {
    request_ = "GET " + options_.path + " HTTP/1.1\r\n";
    net::AppendField("Host", upstream_->name, &request_);
    net::AppendField("User-Agent", "sluice-health-check", &request_);
    net::AppendField("Connection", "close", &request_);
    request_ += "\r\n";
  }

  static Task<void> Run(std::shared_ptr<Check> self);
  void Stop();

 private:
  Task<void> Wait(Duration time);
  Task<void> Ask();
  Task<void> AskOn(UpstreamConnection& connection);
  void Note();
  void OnTimeout();
  [[nodiscard]] Duration Part(Duration of, double part) const;

  net::EventLoop& loop_;
  const HealthCheckOptions options_;
  const net::HeadLimits head_;
  const std::shared_ptr<Upstream> upstream_;
  const std::shared_ptr<net::TlsPeer> peer_;  // null: plain HTTP
  const Tell tell_;
  const Random random_;
  std::string request_;
  CheckedHealth health_;
  net::Timer timer_;
  net::Alarm<Check, &Check::OnTimeout> alarm_;
  std::unique_ptr<UpstreamConnection> connection_;
  std::optional<int> status_;  // of the answer
  std::string error_;          // of TLS; mostly empty
  bool timed_out_ = false;
  bool stopped_ = false;
};

Duration HealthChecks::Check::Part(Duration of, double part) const {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, Duration::period>(of) *
                                              part);
}

Task<void> HealthChecks::Check::Run(std::shared_ptr<Check> self) {
  Check& check = *self;
  const Duration every = check.options_.every;
  co_await check.Wait(check.Part(std::min(every, kFirstWithin), check.random_()));
  while (!check.stopped_) {
    co_await check.Ask();
    if (check.stopped_) break;
    check.Note();
    co_await check.Wait(check.Part(every, 0.9 + 0.2 * check.random_()));
  }
}

void HealthChecks::Check::Stop() {
  stopped_ = true;
  alarm_.Clear();
  timer_.Cancel();
  if (connection_) connection_->Abort();
}

Task<void> HealthChecks::Check::Wait(Duration time) {
  co_await net::Await<bool>([&](auto done) { timer_.Start(time, std::move(done)); });
}

void HealthChecks::Check::OnTimeout() {
  timed_out_ = true;
  if (connection_) connection_->Abort();
}

// Each address in turn, as a request would.
Task<void> HealthChecks::Check::Ask() {
  status_.reset();
  timed_out_ = false;
  alarm_.Set(options_.timeout);
  const std::shared_ptr<const Endpoints> endpoints = upstream_->loops[loop_.index()].endpoints;
  for (const net::tcp::endpoint& endpoint : *endpoints) {
    connection_ = std::make_unique<UpstreamConnection>(loop_, /*upstream=*/0, endpoint, peer_);
    const bool opened = co_await connection_->Open();
    if (stopped_ || timed_out_) break;
    if (!opened) continue;
    co_await AskOn(*connection_);
    break;
  }
  alarm_.Clear();
  if (connection_) error_.assign(connection_->error());
  connection_.reset();
}

Task<void> HealthChecks::Check::AskOn(UpstreamConnection& connection) {
  const bool sent = co_await connection.Write(request_);
  if (!sent) co_return;
  for (int i = 0; i <= kMaxInterimAnswers; ++i) {
    const Http1Stream::HeadState state = co_await connection.ReadHead(head_, options_.timeout);
    if (state != Http1Stream::HeadState::kComplete) co_return;
    net::ResponseHead answer;
    const bool read =
        net::ParseResponseHead(connection.head_bytes(), /*to_head=*/false, &answer).ok();
    if (!read || timed_out_ || stopped_) co_return;
    if (answer.status >= 100 && answer.status < 200) continue;
    status_ = answer.status;
    // A server that says more than we read must not be left with a broken connection.
    connection.StartBody(answer.framing);
    co_await connection.SkipBody(kSkippedBytes, options_.timeout);
    co_return;
  }
}

void HealthChecks::Check::Note() {
  const bool passed = status_ && *status_ >= options_.min_status && *status_ <= options_.max_status;
  auto& counter = passed ? upstream_->checks_passed : upstream_->checks_failed;
  counter.fetch_add(1, std::memory_order_relaxed);
  if (!status_) upstream_->failed_lately.store(true, std::memory_order_relaxed);
  if (!health_.Note(passed)) return;
  upstream_->up.store(passed);
  if (passed) {
    log::Info("upstream is up: its checks pass", {{"upstream", upstream_->name}});
  } else {
    const std::string why = status_           ? "status " + std::to_string(*status_)
                            : timed_out_      ? "no answer in time"
                            : !error_.empty() ? error_
                                              : "no connection, or no answer that can be read";
    log::Warning("upstream is down: its checks fail",
                 {{"upstream", upstream_->name}, {"why", why}});
  }
  tell_(upstream_);
}

HealthChecks::HealthChecks(net::EventLoop& loop, const GatewayOptions& options,
                           const UpstreamList& upstreams, Tell tell, Random random) {
  if (options.health_check.path.empty()) return;
  for (std::size_t i = 0; i < upstreams.size(); ++i) {
    checks_.push_back(std::make_shared<Check>(loop, options, upstreams[i],
                                              PeerOf(options.upstreams[i]), tell, random));
    net::Spawn(Check::Run(checks_.back()));
  }
}

HealthChecks::~HealthChecks() {
  for (const std::shared_ptr<Check>& check : checks_) check->Stop();
}

}  // namespace sluice::gateway
