// What a server does that its parts cannot show alone. The programs are tested in
// tests/integration.
#include "sluice/server/server.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "sluice/base/steady_now.h"
#include "sluice/transport/gateway/gateway.h"

namespace sluice {
namespace {

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

TEST(ServerTest, DoesNotCountInMemoryWhatOthersShouldSee) {
  const std::string shared = "store: { redis: { url: \"redis://127.0.0.1:9\" } }\nthreads: 1\n";
  const auto refused = Server::Start(*config::LoadText("test", shared, ".", 1).config, {}, {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnimplemented);
  const auto server = Server::Start(
      *config::LoadText("test", "threads: 1\n", ".", 1).config,
      [&](std::uint64_t generation) { return config::LoadText("test", shared, ".", generation); },
      {});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_FALSE((*server)->Reload());
  EXPECT_TRUE((*server)->Stop());
}

}  // namespace
}  // namespace sluice
