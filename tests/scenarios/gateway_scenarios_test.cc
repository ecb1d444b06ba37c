// Every scenario once more, through a running gateway: real sockets, the same manual clock. What a
// client can see is held against the file: the status, Retry-After, and the RateLimit field of the
// rule that is named.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "sluice/config/load.h"
#include "sluice/limiter/limiter.h"
#include "sluice/net/http_service.h"
#include "sluice/net/testing/raw_client.h"
#include "sluice/store/memory/memory_store.h"
#include "sluice/transport/gateway/gateway.h"
#include "tests/scenarios/scenario.h"
#include "tests/scenarios/scenario_request.h"

namespace sluice::testing {
namespace {

int StatusOf(const std::string& answer) {
  static const std::map<std::string, int> kStatuses = {{"allow", 200},   {"delay", 200},
                                                       {"limit", 429},   {"never", 422},
                                                       {"missing", 401}, {"deny", 403}};
  return kStatuses.at(answer);
}

net::Task<net::Answer> AnswerAnything(net::Exchange&) { co_return net::Answer{.body = "{}"}; }

class GatewayScenario : public ::testing::TestWithParam<std::string> {
 protected:
  ~GatewayScenario() override {
    if (gateway_ != nullptr) gateway_->Drain(std::chrono::seconds{5});
    if (upstream_ != nullptr) upstream_->Drain(std::chrono::seconds{5});
    loops_.Stop();
  }

  void Start() {
    config::LoadResult loaded = config::LoadText(scenario_.path, scenario_.config, ".", 1);
    ASSERT_TRUE(loaded.config.has_value()) << loaded.diagnostics.Text();
    rules_ = loaded.config->rules;
    store_ = *MemoryStore::Open({.max_keys = 1000}, clock_.Read());
    limiter_ = std::make_unique<Limiter>(
        Limiter::Parts{.store = *store_, .hash_key = store_->hash_key(), .clock = clock_},
        *ActiveRules::Make(rules_, *store_, clock_));
    loops_.Start();
    const net::HostPort anywhere{.host = "127.0.0.1", .port = 0};
    auto upstream =
        net::TcpServer::Start(loops_, anywhere, {}, net::HttpService(AnswerAnything, {}));
    ASSERT_TRUE(upstream.ok()) << upstream.status();
    upstream_ = *std::move(upstream);
    gateway::GatewayOptions options;
    options.listen = anywhere;
    options.upstreams = {{.address = {.host = "127.0.0.1", .port = upstream_->endpoint().port()}}};
    Limiter* const limiters[] = {limiter_.get()};
    auto gateway = gateway::Gateway::Start(loops_, limiters, options);
    ASSERT_TRUE(gateway.ok()) << gateway.status();
    gateway_ = *std::move(gateway);
    client_ = std::make_unique<net::testing::RawClient>(gateway_->endpoint().port());
  }

  void Do(const Step& step) {
    if (step.kind == Step::Kind::kClock) return clock_.StepWall(step.wait);
    clock_.Advance(step.wait);
    const ScenarioRequest request = RequestOf(scenario_, step, *rules_);
    std::string text =
        request.method + " " + request.target + " HTTP/1.1\r\nHost: " + request.host + "\r\n";
    for (const auto& [name, value] : request.headers) text += name + ": " + value + "\r\n";
    for (int i = 0; i < step.times; ++i) {
      const net::testing::RawResponse response = client_->Ask(text + "\r\n");
      SCOPED_TRACE(scenario_.path + ":" + std::to_string(step.line));
      EXPECT_EQ(response.status, StatusOf(step.answer)) << response.head << response.body;
      Compare(step, response);
    }
  }

  static void Compare(const Step& step, const net::testing::RawResponse& response) {
    for (const auto& [name, value] : step.expected) {
      if (name == "rule" && response.status == 429) {
        EXPECT_NE(response.body.find("\"" + value + "\""), std::string::npos) << response.body;
      }
      if (name == "remaining") {
        EXPECT_NE(response.Field("RateLimit").find(";r=" + value), std::string::npos)
            << response.head;
      }
      const auto wait = ParseDuration(value);
      if (name == "retry" && wait) {
        const auto seconds = std::chrono::ceil<std::chrono::seconds>(*wait).count();
        EXPECT_EQ(response.Field("Retry-After"), std::to_string(seconds));
      }
      if (name == "retry" && !wait) {
        EXPECT_FALSE(response.Has("Retry-After"));
      }
    }
  }

  ManualClock clock_;
  Scenario scenario_ = ReadScenario(GetParam());
  std::shared_ptr<const RuleSet> rules_;
  std::unique_ptr<MemoryStore> store_;
  std::unique_ptr<Limiter> limiter_;
  net::EventLoops loops_{1};
  std::unique_ptr<net::TcpServer> upstream_;
  std::unique_ptr<gateway::Gateway> gateway_;
  std::unique_ptr<net::testing::RawClient> client_;
};

TEST_P(GatewayScenario, GoesAsWritten) {
  ASSERT_NO_FATAL_FAILURE(Start());
  for (const Step& step : scenario_.steps) Do(step);
}

// Those in which a step ends or takes back a request by name need the engine's own hands.
std::vector<std::string> FilesForAGateway() {
  std::vector<std::string> files;
  for (const std::string& file : ScenarioFiles()) {
    if (!ReadScenario(file).NeedsEngine()) files.push_back(file);
  }
  return files;
}

INSTANTIATE_TEST_SUITE_P(Files, GatewayScenario, ::testing::ValuesIn(FilesForAGateway()),
                         [](const auto& param) {
                           return std::filesystem::path(param.param).stem().string();
                         });

}  // namespace
}  // namespace sluice::testing
