// What stands in the access log of each kind of request.
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

namespace json = boost::json;

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string kGet = "GET / HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n";

class AccessTest : public GatewayTest {
 protected:
  AccessTest() {
    std::string pattern = ::testing::TempDir() + "access.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    lines_ = *LineWriter::Open({.path = folder_ + "/log", .rings = loops_.size()});
    log_.emplace(AccessLog{.lines = *lines_, .form = AccessForm::kJson});
    options_.access_log = &*log_;
  }
  ~AccessTest() override {
    gateway_.reset();
    lines_.reset();
    std::filesystem::remove_all(folder_);
  }

  // The lines that have come since the last call, once there are so many.
  std::vector<json::object> Lines(std::size_t count) {
    std::vector<json::object> lines;
    Until([&] {
      lines.clear();
      std::ifstream file(folder_ + "/log");
      std::size_t number = 0;
      for (std::string line; std::getline(file, line) && !file.eof(); ++number) {
        if (number >= seen_) lines.push_back(json::parse(line).as_object());
      }
      return lines.size() >= count;
    });
    seen_ += lines.size();
    EXPECT_EQ(lines.size(), count);
    return lines;
  }
  json::object Line() {
    auto lines = Lines(1);
    return lines.empty() ? json::object() : lines.front();
  }
  // Holds the named members of `line` against what is expected of them.
  static void Expect(const json::object& line, const std::string& expected) {
    const json::value members = json::parse(expected);
    for (const auto& [name, value] : members.as_object()) {
      EXPECT_EQ(line.at(name), value) << name << " of " << json::serialize(line);
    }
  }

  std::string folder_;
  std::unique_ptr<LineWriter> lines_;
  std::optional<AccessLog> log_;
  std::size_t seen_ = 0;
};

TEST_F(AccessTest, EachRequestThatWasDecidedOnHasALine) {
  StartByHand({MakeRule("api", HeaderSource("K"), Window(2, 1min))});
  RawClient client(port());
  client.Send(
      "POST /v1/orders?key=secret HTTP/1.1\r\nHost: shop\r\nK: ann\r\nUser-Agent: test/1\r\n"
      "Referer: https://a.example/\r\nContent-Length: 5\r\n\r\nhello");
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("hello");
  upstream.Send(kOk);
  const std::string id = client.ReadResponse().Field("X-Request-Id");
  const json::object line = Line();
  Expect(line, R"({"client":"127.0.0.1","peer":"127.0.0.1","method":"POST","path":"/v1/orders",
    "protocol":"HTTP/1.1","host":"shop","user_agent":"test/1","referer":"https://a.example/",
    "status":200,"bytes_sent":2,"bytes_received":5,"decision":"allowed","rule":"api",
    "result":"forwarded","upstream":"127.0.0.1:)" +
                   std::to_string(upstream_.port()) + R"("})");
  EXPECT_EQ(line.at("request_id"), json::string(id));
  EXPECT_GE(line.at("duration_ms").as_double(), line.at("upstream_ms").as_double());

  client.Send("HEAD / HTTP/1.0\r\nK: ann\r\n\r\n");
  upstream.ReadUntil("\r\n\r\n");
  upstream.Send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
  EXPECT_EQ(client.ReadResponse(/*to_head=*/true).status, 200);
  Expect(Line(), R"({"method":"HEAD","protocol":"HTTP/1.0","host":"","bytes_sent":0})");

  const std::string body = Get("/").body;
  Expect(Line(), R"({"status":429,"decision":"limited","rule":"api","result":"denied",
    "upstream":null,"upstream_ms":null,"bytes_sent":)" +
                     std::to_string(body.size()) + "}");
  Get("/", "");
  Expect(Line(), R"({"status":401,"decision":"missing_identity","result":"denied"})");
}

TEST_F(AccessTest, WhatWasRefusedUnaskedHasALineToo) {
  options_.health_path = "/health";
  options_.header_fields = 10;
  options_.header_timeout = 50ms;
  StartByHand();
  EXPECT_EQ(Get("/%00").status, 400);
  Expect(Line(), R"({"method":"GET","path":"/%00","status":400,"decision":"none","rule":null,
    "result":"refused","upstream":null})");
  EXPECT_EQ(Get("/health").status, 200);  // has none
  EXPECT_EQ(RawClient(port()).Ask("GET / HTTP/1.1\r\nHost : a\r\n\r\n").status, 400);
  Expect(Line(), R"({"client":"127.0.0.1","method":null,"path":null,"status":400,
    "decision":"none","result":"refused"})");
  std::string many;
  for (int i = 0; i < 20; ++i) many += "X: y\r\n";
  EXPECT_EQ(Get("/", many).status, 431);
  Expect(Line(), R"({"status":431,"result":"refused"})");
  RawClient slow(port());
  EXPECT_EQ(slow.Ask("GET / HT").status, 408);
  Expect(Line(), R"({"status":408,"result":"refused"})");
}

TEST_F(AccessTest, AClientThatLeavesAnUpstreamThatFailsAndATunnelHaveTheirs) {
  StartByHand();
  {
    RawClient client(port());
    client.Send(kGet);
    RawClient upstream(upstream_.Accept());
    upstream.ReadUntil("\r\n\r\n");
    client.Close();
    Expect(Line(), R"({"status":499,"result":"aborted","decision":"allowed","rule":null})");
  }
  {
    RawClient client(port());
    client.Send(kGet);
    RawClient upstream(upstream_.Accept());
    upstream.ReadUntil("\r\n\r\n");
    upstream.Send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    upstream.EndWriting();
    client.ReadToEnd();
    Expect(Line(), R"({"status":200,"result":"failed","bytes_sent":4})");
  }
  {
    RawClient client(port());
    client.Send(
        "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    RawClient upstream(upstream_.Accept());
    upstream.ReadUntil("\r\n\r\n");
    upstream.Send("HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello");
    client.ReadResponse();
    client.Send("hi");
    upstream.ReadExactly(2);
    client.ReadExactly(5);
    client.Close();
    upstream.Close();
    Expect(Line(), R"({"status":101,"result":"forwarded","bytes_sent":5,"bytes_received":2})");
  }
  upstream_.Close();
  EXPECT_EQ(Get("/").status, 502);
  Expect(Line(), R"({"status":502,"result":"failed","upstream_ms":null})");
}

TEST_F(AccessTest, BehindAProxyTheClientIsWhomTheRulesSee) {
  rule_options_.client_address.trusted_proxies = {*IpPrefix::Parse("127.0.0.1")};
  StartByHand();
  RawClient client(port());
  for (const std::string address : {"192.0.2.7", "2001:db8::1", "2001:db8::2"}) {
    client.Send("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6, " + address + "\r\n\r\n");
    RawClient upstream(upstream_.Accept());
    upstream.ReadUntil("\r\n\r\n");
    upstream.Send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    client.ReadResponse();
    Expect(Line(), R"({"client":")" + address + R"(","peer":"127.0.0.1"})");
  }
}

}  // namespace
}  // namespace sluice::gateway
