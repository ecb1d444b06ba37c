// Active checks of upstreams, and names that are looked up again.
#include <poll.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>

#include "absl/status/status.h"
#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::string_view kGet = "GET /v1/orders HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n";

// An upstream of which the test says how it answers each connection's one request.
class Server {
 public:
  explicit Server(std::string answer) : answer_(std::move(answer)), thread_([this] { Serve(); }) {}
  ~Server() {
    ending_ = true;
    thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void Say(std::string answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  [[nodiscard]] std::uint16_t port() const { return listener_.port(); }
  [[nodiscard]] int checks() const { return checks_; }
  [[nodiscard]] int requests() const { return requests_; }
  [[nodiscard]] std::string last_check() {
    const std::lock_guard lock(mutex_);
    return last_check_;
  }

 private:
  void Serve() {
    pollfd come{.fd = listener_.socket(), .events = POLLIN, .revents = 0};
    while (!ending_) {
      if (::poll(&come, 1, 10) != 1) continue;
      RawClient connection(listener_.Accept());
      const std::string head = connection.ReadUntil("\r\n\r\n");
      const bool check = head.find("User-Agent: sluice-health-check") != std::string::npos;
      const std::lock_guard lock(mutex_);
      if (check) last_check_ = head;
      ++(check ? checks_ : requests_);
      connection.Send(check ? answer_ : "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  }

  RawListener listener_;
  std::mutex mutex_;
  std::string answer_;
  std::string last_check_;
  std::atomic<int> checks_ = 0;
  std::atomic<int> requests_ = 0;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

const std::string kWell = "HTTP/1.1 204 No Content\r\n\r\n";
const std::string kUnwell = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

class HealthChecksTest : public GatewayTest {
 protected:
  HealthChecksTest() : GatewayTest(/*loops=*/1) {
    options_.health_check = {.path = "/up", .every = 1ms, .timeout = 10s};
  }
  ~HealthChecksTest() override { gateway_.reset(); }

  void StartBefore(const std::vector<std::uint16_t>& ports) {
    for (const std::uint16_t port : ports) {
      options_.upstreams.push_back({.address = {"127.0.0.1", port}});
    }
    Start({}, 0);
  }
  void Reload() {
    auto settings = gateway_->Prepare(options_);
    ASSERT_TRUE(settings.ok()) << settings.status();
    gateway_->Use(*std::move(settings));
  }
  [[nodiscard]] Gateway::UpstreamCounts Counts(std::size_t upstream) const {
    return gateway_->counters().upstreams.at(upstream);
  }
  void UntilUp(std::size_t upstream, bool up) {
    Until([&] { return Counts(upstream).up == up; });
    loops_.OnEach([](net::EventLoop&) {});  // each loop has heard of it
  }
  int StatusNow() {
    RawClient client(port());
    return client.Ask(kGet).status;
  }

  Server one_{kWell};
  Server two_{kWell};
};

TEST_F(HealthChecksTest, OneThatIsDownGetsNothingUntilItIsUpAgain) {
  StartBefore({one_.port(), two_.port()});
  one_.Say(kUnwell);
  UntilUp(0, false);
  const int before = one_.requests();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(StatusNow(), 200);
  EXPECT_EQ(one_.requests(), before);
  EXPECT_EQ(two_.requests(), 6);
  EXPECT_EQ(Counts(1).up, true);
  one_.Say(kWell);
  UntilUp(0, true);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(StatusNow(), 200);
  EXPECT_EQ(one_.requests(), before + 3);
}

TEST_F(HealthChecksTest, WhenAllAreDownRequestsAreStillTried) {
  StartBefore({one_.port(), two_.port()});
  one_.Say(kUnwell);
  two_.Say(kUnwell);
  UntilUp(0, false);
  UntilUp(1, false);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(StatusNow(), 200);
  EXPECT_EQ(one_.requests() + two_.requests(), 6);
  EXPECT_EQ(one_.requests(), 3);
}

TEST_F(HealthChecksTest, ChecksAreNoRequests) {
  options_.upstream_connections = 1;
  Rule closed;
  closed.name = "closed";
  closed.deny = true;
  options_.upstreams = {{.address = {"127.0.0.1", one_.port()}}};
  Start({closed}, 0);
  Until([this] { return one_.checks() > 10; });
  EXPECT_EQ(gateway_->counters().requests, 0u);
  EXPECT_EQ(Counts(0).requests, 0u);
  EXPECT_EQ(Counts(0).failures, 0u);
  EXPECT_GT(Counts(0).checks_passed, 5u);
  EXPECT_EQ(Counts(0).checks_failed, 0u);
  EXPECT_EQ(one_.last_check(),
            "GET /up HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(one_.port()) +
                "\r\nUser-Agent: sluice-health-check\r\n"
                "Connection: close\r\n\r\n");
}

TEST_F(HealthChecksTest, TheyDoNotWaitForThePlacesOfRequests) {
  options_.upstream_connections = 1;
  options_.upstreams = {{.address = {"127.0.0.1", upstream_.port()}}};
  Start({}, 0);
  std::vector<std::unique_ptr<RawClient>> ends;
  const auto next = [&](std::string_view what) -> RawClient& {
    while (true) {
      ends.push_back(std::make_unique<RawClient>(upstream_.Accept()));
      const std::string head = ends.back()->ReadUntil("\r\n\r\n");
      if (head.starts_with(what)) return *ends.back();
      ends.back()->Send(kWell);
      ends.back()->Close();
    }
  };
  RawClient client(port());
  client.Send(kGet);
  RawClient& request = next("GET /v1/orders");
  for (int i = 0; i < 3; ++i) {
    RawClient& check = next("GET /up");
    check.Send(kWell);
    check.Close();
  }
  request.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(client.ReadResponse().status, 200);
}

// Each answer, and whether it is one of an upstream that is up.
TEST_F(HealthChecksTest, WhatAnAnswerMustBeLike) {
  const struct {
    std::string answer;
    bool up;
  } rows[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true},
      {"HTTP/1.0 399 Odd\r\n\r\nand a body until the end", true},
      {"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\nnot all of it", true},
      {"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", false},
      {"HTTP/1.1 101 Switching Protocols\r\n\r\n", false},
      {"HTTP/1.1 200", false},
      {"SSH-2.0-OpenSSH_9.2\r\n\r\n", false},
      {"HTTP/1.1 200 OK\r\nA: " + std::string(200'000, 'a') + "\r\n\r\n", false},
      {"", false},
  };
  StartBefore({one_.port()});
  bool up = true;
  for (const auto& row : rows) {
    SCOPED_TRACE(row.answer.substr(0, 60));
    one_.Say(up ? kUnwell : kWell);
    UntilUp(0, !up);
    up = !up;
    if (up == row.up) {
      one_.Say(up ? kUnwell : kWell);
      UntilUp(0, !up);
    }
    one_.Say(row.answer);
    UntilUp(0, row.up);
    up = row.up;
  }
}

TEST_F(HealthChecksTest, OneThatSaysNothingIsDown) {
  options_.health_check.timeout = 50ms;
  options_.upstreams = {{.address = {"127.0.0.1", upstream_.port()}}};  // it only listens
  Start({}, 0);
  UntilUp(0, false);
  EXPECT_GE(Counts(0).checks_failed, 2u);
}

TEST_F(HealthChecksTest, OneThatIsGoneIsDownAndKeepsItsWordWhileSettingsChange) {
  StartBefore({one_.port(), upstream_.port()});
  upstream_.Close();
  UntilUp(1, false);
  options_.response_timeout = 10s;
  Reload();
  EXPECT_EQ(Counts(1).up, false);
  options_.health_check.every = 1h;
  Reload();
  EXPECT_EQ(Counts(1).up, false);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(StatusNow(), 200);
  EXPECT_EQ(one_.requests(), 4);
  EXPECT_EQ(Counts(1).failures, 0u);
}

TEST_F(HealthChecksTest, WithoutChecksNobodyIsDown) {
  StartBefore({one_.port(), two_.port()});
  one_.Say(kUnwell);
  UntilUp(0, false);
  options_.health_check.path.clear();
  Reload();
  EXPECT_EQ(Counts(0).up, std::nullopt);
  EXPECT_GT(Counts(0).checks_failed, 0u);
  const auto checks = [this] {
    const Gateway::Counters counters = gateway_->counters();
    std::uint64_t sum = 0;
    for (const auto& one : counters.upstreams) sum += one.checks_passed + one.checks_failed;
    return sum;
  };
  const std::uint64_t checked = checks();
  const int before = one_.requests();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(StatusNow(), 200);
  EXPECT_EQ(one_.requests(), before + 2);
  EXPECT_EQ(checks(), checked);
}

// One that comes back into the list is asked anew.
TEST_F(HealthChecksTest, OneThatIsAddedIsUpUntilChecksSayOtherwise) {
  StartBefore({one_.port()});
  one_.Say(kUnwell);
  UntilUp(0, false);
  const auto original = options_.upstreams;
  options_.upstreams = {{.address = {"127.0.0.1", two_.port()}}};
  Reload();
  EXPECT_EQ(Counts(0).up, true);
  options_.upstreams = original;
  options_.health_check.failures = 1000;
  Reload();
  EXPECT_EQ(Counts(0).up, true);
}

TEST_F(HealthChecksTest, AThousandChecksLeaveNothingBehind) {
  const auto open_files = [] {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  };
  StartBefore({one_.port(), two_.port()});
  Until([this] { return Counts(0).checks_passed >= 10; });
  const auto before = open_files();
  Until([this] { return Counts(0).checks_passed + Counts(1).checks_passed >= 1000; });
  options_.health_check.path.clear();
  Reload();
  Until([&] { return open_files() <= before; });
  EXPECT_EQ(Counts(0).checks_failed + Counts(1).checks_failed, 0u);
}

// A zone that the test changes while the gateway asks it. A lookup may outlive the gateway, and so
// the test.
class NamesTest : public GatewayTest {
 protected:
  NamesTest() : GatewayTest(/*loops=*/1) {
    options_.resolve_every = 1ms;
    resolve_ = [zone = zone_](const net::HostPort& where) { return zone->Find(where.host); };
  }
  ~NamesTest() override { gateway_.reset(); }

  struct Zone {
    absl::StatusOr<Endpoints> Find(const std::string& name) {
      const std::lock_guard lock(mutex);
      ++lookups;
      if (!ports.contains(name)) return absl::NotFoundError("no such name");
      return Endpoints{{net::asio::ip::make_address("127.0.0.1"), ports[name]}};
    }

    std::mutex mutex;
    std::map<std::string, std::uint16_t> ports;
    std::atomic<int> lookups = 0;
  };

  void Set(const std::string& name, std::uint16_t to) {
    const std::lock_guard lock(zone_->mutex);
    zone_->ports[name] = to;
  }
  void Forget() {
    const std::lock_guard lock(zone_->mutex);
    zone_->ports.clear();
  }
  // Nothing that was found before is still on its way to the loop.
  void UntilLookedUp() {
    const int before = zone_->lookups;
    Until([&] { return zone_->lookups >= before + 2; });
    loops_.OnEach([](net::EventLoop&) {});
  }

  RawListener other_;
  const std::shared_ptr<Zone> zone_ = std::make_shared<Zone>();
};

TEST_F(NamesTest, NewConnectionsGoWhereTheNameLeadsNowAndOldOnesAreNotUsed) {
  Set("api.example", upstream_.port());
  options_.upstreams = {{.address = {"api.example", 80}}};
  Start({}, 0);
  RawClient client(port());
  const auto answer = [&](RawClient& connection) {
    EXPECT_THAT(connection.ReadUntil("\r\n\r\n"), HasSubstr("GET /v1/orders"));
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    EXPECT_EQ(client.ReadResponse().status, 200);
  };
  client.Send(kGet);
  RawClient kept(upstream_.Accept());
  answer(kept);
  Set("api.example", other_.port());
  EXPECT_TRUE(kept.Ended());
  client.Send(kGet);
  RawClient in_use(other_.Accept());
  in_use.ReadUntil("\r\n\r\n");
  Set("api.example", upstream_.port());
  UntilLookedUp();
  in_use.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(client.ReadResponse().status, 200);
  EXPECT_TRUE(in_use.Ended());  // it ends its request, and is not kept
  Forget();
  UntilLookedUp();
  client.Send(kGet);
  RawClient last(upstream_.Accept());
  answer(last);
  EXPECT_EQ(gateway_->counters().upstreams.at(0).requests, 3u);
  EXPECT_EQ(gateway_->counters().upstreams.at(0).name, "api.example:80");
}

TEST_F(NamesTest, AReloadAsksForNewNamesAlone) {
  options_.resolve_every = 1h;
  Set("api.example", upstream_.port());
  options_.upstreams = {{.address = {"api.example", 80}}};
  Start({}, 0);
  Forget();
  options_.response_timeout = 1s;
  EXPECT_TRUE(gateway_->Prepare(options_).ok()) << "its addresses are known";
  options_.upstreams.push_back({.address = {"new.example", 80}});
  EXPECT_TRUE(absl::IsNotFound(gateway_->Prepare(options_).status()));
  Set("new.example", other_.port());
  EXPECT_TRUE(gateway_->Prepare(options_).ok());
}

// While it is down it gets no request that could fail.
TEST_F(NamesTest, ACheckThatFindsNobodyMakesItLookSoon) {
  options_.resolve_every = 1h;
  options_.health_check = {.path = "/up", .every = 1ms, .timeout = 10s};
  Set("api.example", 1);  // where nobody listens
  options_.upstreams = {{.address = {"api.example", 80}}};
  Start({}, 0);
  Until([this] { return gateway_->counters().upstreams.at(0).up == false; });
  const Server server(kWell);
  Set("api.example", server.port());
  Until([this] { return gateway_->counters().upstreams.at(0).up == true; });
  EXPECT_EQ(gateway_->counters().upstreams.at(0).requests, 0u);
}

TEST_F(NamesTest, AFailureMakesItLookSoon) {
  options_.resolve_every = 1h;
  options_.upstream_health.failures = 1000;
  Set("api.example", 1);  // where nobody listens
  options_.upstreams = {{.address = {"api.example", 80}}};
  Start({}, 0);
  Set("api.example", upstream_.port());
  std::thread server([this] {
    RawClient connection(upstream_.Accept());
    connection.ReadUntil("\r\n\r\n");
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  EXPECT_EQ(Get("/v1/orders").status, 502);
  Until([this] { return Get("/v1/orders").status == 200; });
  server.join();
}

}  // namespace
}  // namespace sluice::gateway
