// What a server does that its parts cannot show alone. The programs are tested in
// tests/integration.
#include "sluice/server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/base/log.h"
#include "sluice/base/steady_now.h"
#include "sluice/net/testing/raw_client.h"
#include "sluice/transport/gateway/gateway.h"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr const char* kKnown = "http://127.0.0.1:9";

config::LoadResult Configuration(const std::string& upstream, std::uint64_t generation) {
  const std::string text = "threads: 1\ngateway: { listen: \"127.0.0.1:0\", upstream: \"" +
                           upstream + "\" }\nrules: []\n";
  return config::LoadText("test", text, ".", generation);
}

TEST(ServerTest, AReloadThatWaitsForANameIsGivenUpWhenTheEndIsAskedFor) {
  const auto asked = std::make_shared<std::promise<void>>();
  const auto answer = std::make_shared<std::promise<void>>();
  std::string upstream = "http://dead.example:80";
  auto server = Server::Start(
      *Configuration(kKnown, 1).config,
      [&](std::uint64_t generation) { return Configuration(upstream, generation); },
      [asked, answer](const net::HostPort& where) -> absl::StatusOr<gateway::Endpoints> {
        if (net::IsLiteral(where)) return net::Resolve(where);
        asked->set_value();
        answer->get_future().wait();
        return absl::NotFoundError("too late");
      });
  ASSERT_TRUE(server.ok()) << server.status();
  const Time before = SteadyNow();
  std::jthread reload([&](const std::stop_token& stop) { EXPECT_FALSE((*server)->Reload(stop)); });
  asked->get_future().wait();
  reload.request_stop();
  reload.join();
  EXPECT_LT(SteadyNow() - before, gateway::Gateway::kLookUpWithin);
  answer->set_value();
  upstream = "http://127.0.0.1:7";
  EXPECT_TRUE((*server)->Reload()) << "nothing is left of the one that was given up";
  EXPECT_TRUE((*server)->Stop());
}

std::uint16_t PortOf(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

// A port that nobody listens on: of a socket that is bound and no more.
class DeadPort {
 public:
  DeadPort() : socket_(context_, net::tcp::endpoint(net::asio::ip::address_v4::loopback(), 0)) {}
  [[nodiscard]] std::uint16_t number() const { return socket_.local_endpoint().port(); }

 private:
  net::asio::io_context context_;
  net::tcp::socket socket_;
};

TEST(ServerTest, AStartThatWaitsForTheSharedStoreIsGivenUpWhenTheEndIsAskedFor) {
  const DeadPort port;
  const std::string text =
      absl::StrCat("store: { redis: { url: \"redis://127.0.0.1:", port.number(),
                   "\", connect_wait: 60s } }\n", "admin: { listen: 127.0.0.1:0 }\nthreads: 1\n");
  const auto config = config::LoadText("test", text, ".", 1);
  ASSERT_TRUE(config.config) << config.diagnostics.errors();
  const Time before = SteadyNow();
  std::stop_source stop;
  std::promise<absl::Status> started;
  std::jthread start([&] {
    started.set_value(Server::Start(*config.config, {}, net::Resolve, stop.get_token()).status());
  });
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(started.get_future().get()));
  EXPECT_LT(SteadyNow() - before, std::chrono::seconds{30});
}

TEST(ServerTest, AStartThatWaitsForANameIsGivenUpWhenTheEndIsAskedFor) {
  const auto answer = std::make_shared<std::promise<void>>();
  std::stop_source stop;
  const auto server = Server::Start(
      *Configuration("http://dead.example:80", 1).config, {},
      [&stop, answer](const net::HostPort& /*where*/) -> absl::StatusOr<gateway::Endpoints> {
        stop.request_stop();
        answer->get_future().wait();
        return absl::NotFoundError("too late");
      },
      stop.get_token());
  EXPECT_TRUE(absl::IsCancelled(server.status())) << server.status();
  answer->set_value();
}

TEST(ServerTest, OpensItsDoorsWithoutTheSharedStoreOnceItHasWaited) {
  std::vector<std::string> lines;
  log::SetSink([&lines](std::string_view line) { lines.emplace_back(line); });
  const DeadPort port;
  const std::string text =
      absl::StrCat("store: { redis: { url: \"redis://127.0.0.1:", port.number(),
                   "\", connect_wait: 50ms } }\n", "admin: { listen: 127.0.0.1:0 }\nthreads: 1\n");
  auto config = config::LoadText("test", text, ".", 1);
  ASSERT_TRUE(config.config) << config.diagnostics.errors();
  const auto server = Server::Start(*config.config, {}, {});
  ASSERT_TRUE(server.ok()) << server.status();
  net::testing::RawClient client(PortOf((*server)->admin_address()));
  const std::string body = client.Ask("GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n").body;
  EXPECT_THAT(body, HasSubstr(R"({"status":"ready","shared_store":{"up":false,"since":")"));
  EXPECT_THAT(body, HasSubstr(R"("decides":"failure modes","why":)"));
  EXPECT_TRUE((*server)->Stop());
  log::SetSink(nullptr);
  EXPECT_THAT(lines, Contains(HasSubstr("shared store does not answer; failure modes decide")));
  EXPECT_THAT(lines, Contains(HasSubstr("doors open without the shared store")));
}

}  // namespace
}  // namespace sluice
