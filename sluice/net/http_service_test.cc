#include "sluice/net/http_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "sluice/net/testing/raw_client.h"

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::RawClient;
using testing::RawResponse;

constexpr std::size_t kMaxBody = 100'000;

// Answers with what it was asked, and how much of it there was.
Task<Answer> Echo(Exchange& exchange) {
  Answer answer{.content_type = "text/plain"};
  answer.body = std::string(exchange.head().method) + " " + std::string(exchange.path());
  if (exchange.path() == "/slow") co_await exchange.loop().Sleep(200ms);
  if (exchange.path() == "/ignore") co_return answer;
  const absl::StatusOr<std::string> body = co_await exchange.ReadBody(kMaxBody);
  if (absl::IsResourceExhausted(body.status())) co_return ProblemAnswer(413, "");
  if (absl::IsDeadlineExceeded(body.status())) co_return ProblemAnswer(408, "");
  if (!body.ok()) co_return ProblemAnswer(400, "");
  answer.body += " " + std::to_string(body->size());
  co_return answer;
}

class HttpServiceTest : public ::testing::Test {
 protected:
  void Start(Http1Limits limits = {}, TcpServer::Options options = {}) {
    auto server = TcpServer::Start(loops_, {"127.0.0.1", 0}, options, HttpService(Echo, limits));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    loops_.Start();
  }
  ~HttpServiceTest() override {
    server_.reset();
    loops_.Stop();
  }
  std::uint16_t port() { return server_->endpoint().port(); }

  EventLoops loops_{2};
  std::unique_ptr<TcpServer> server_;
};

TEST_F(HttpServiceTest, ServesRequestsOfOneConnectionInOrder) {
  Start();
  RawClient client(port());
  EXPECT_EQ(client.Ask("GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n").body, "GET /a 0");
  // Pipelined: three at once, the middle one with a body, an empty line in front of the last.
  client.Send(
      "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
      "POST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello\r\n"
      "GET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().body, "GET /slow 0");
  EXPECT_EQ(client.ReadResponse().body, "POST /2 5");
  const RawResponse last = client.ReadResponse();
  EXPECT_EQ(last.body, "GET /3 0");
  EXPECT_EQ(last.Field("Connection"), "close");
  EXPECT_TRUE(client.Ended());
}

TEST_F(HttpServiceTest, TakesAHeadThatArrivesByteByByte) {
  Start();
  RawClient client(port());
  for (const char c : std::string("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")) client.Send({&c, 1});
  EXPECT_EQ(client.ReadResponse().body, "GET /a 0");
}

TEST_F(HttpServiceTest, ReadsChunkedAndLongBodies) {
  Start();
  RawClient client(port());
  EXPECT_EQ(client
                .Ask("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")
                .body,
            "POST / 7");
  const std::string body(90'000, 'x');
  EXPECT_EQ(client.Ask("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n" + body).body,
            "PUT / 90000");
  EXPECT_EQ(client.Ask("GET /z HTTP/1.1\r\nHost: x\r\n\r\n").body, "GET /z 0");
}

TEST_F(HttpServiceTest, AnswersMalformedRequestsAndCloses) {
  Start();
  const struct {
    std::string bytes;
    int status;
  } rows[] = {
      {"GET / HTTP/1.1\r\nHost: x\nX: y\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       400},
      {"GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(40'000, 'x') + "\r\n\r\n", 431},
      {"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505},
      {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: br\r\n\r\n", 501},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.bytes.substr(0, 60));
    RawClient client(port());
    // Whatever follows is not taken for a request.
    const RawResponse response = client.Ask(row.bytes + "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(response.status, row.status);
    EXPECT_EQ(response.Field("Connection"), "close");
    EXPECT_EQ(response.Field("Content-Type"), "application/problem+json");
    EXPECT_THAT(response.body, HasSubstr("\"status\":" + std::to_string(row.status)));
    EXPECT_TRUE(client.Ended());
  }
}

TEST_F(HttpServiceTest, SendsNoBodyToHead) {
  Start();
  RawClient client(port());
  client.Send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.ReadResponse(/*to_head=*/true).Field("Content-Length"), "9");
  EXPECT_EQ(client.ReadResponse().body, "GET /b 0");
}

TEST_F(HttpServiceTest, AsksForTheBodyOnlyWhenItWantsIt) {
  Start();
  const std::string post = " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ";
  RawClient wanted(port());
  EXPECT_EQ(wanted.Ask("POST /a" + post + "3\r\n\r\n").status, 100);
  EXPECT_EQ(wanted.Ask("abc").body, "POST /a 3");
  // Too long: told at once, without a 100, and closed, for the body may follow or not.
  RawClient refused(port());
  const RawResponse response = refused.Ask("POST /a" + post + "1000000\r\n\r\n");
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(response.Field("Connection"), "close");
}

TEST_F(HttpServiceTest, ABodyThatNobodyReadIsNeverTakenForARequest) {
  Start();
  for (const std::string& body :
       {std::string("Content-Length: 26\r\n\r\nGET /evil HTTP/1.1\r\nHost:x"),
        std::string("Transfer-Encoding: chunked\r\n\r\n"
                    "1a\r\nGET /evil HTTP/1.1\r\nHost:x\r\n0\r\n\r\n")}) {
    RawClient client(port());
    EXPECT_EQ(client.Ask("POST /ignore HTTP/1.1\r\nHost: x\r\n" + body).body, "POST /ignore");
    EXPECT_EQ(client.Ask("GET /next HTTP/1.1\r\nHost: x\r\n\r\n").body, "GET /next 0");
  }
  // Too much to skip: the answer arrives all the same, and the connection ends.
  RawClient client(port());
  client.Send("POST /ignore HTTP/1.1\r\nHost: x\r\nContent-Length: 70000\r\n\r\n");
  client.Send(std::string(70'000, 'x'));
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.body, "POST /ignore");
  EXPECT_EQ(response.Field("Connection"), "close");
  EXPECT_TRUE(client.Ended());
}

TEST_F(HttpServiceTest, CutsOffClientsThatAreTooSlow) {
  Start({.idle_time = 50ms, .head_time = 50ms, .body_time = 50ms});
  RawClient idle(port());
  RawClient slow_head(port());
  slow_head.Send("GET / HT");
  RawClient slow_body(port());
  slow_body.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_TRUE(idle.Ended());
  EXPECT_EQ(slow_head.ReadResponse().status, 408);
  EXPECT_TRUE(slow_head.Ended());
  EXPECT_EQ(slow_body.ReadResponse().status, 408);
  EXPECT_TRUE(slow_body.Ended());
}

TEST_F(HttpServiceTest, FramingThatComesDropByDropIsNoProgress) {
  Start({.body_time = 50ms});
  const std::string head = " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string_view begin : {"3;", "1\r\na\r\n2;", "0\r\nTrailer: "}) {
    SCOPED_TRACE(begin);
    RawClient client(port());
    client.Send("POST /a" + head + std::string(begin));
    EXPECT_TRUE(client.Drip("x"));
    const RawResponse response = client.ReadResponse();
    EXPECT_EQ(response.status, 408);
    EXPECT_EQ(response.Field("Connection"), "close");
    EXPECT_TRUE(client.Ended());
  }
}

TEST_F(HttpServiceTest, ABodyThatIsSkippedHasOneDeadline) {
  Start({.body_time = 50ms, .close_time = 50ms});
  RawClient client(port());
  const RawResponse answer =
      client.Ask("POST /ignore HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(client.Drip("1\r\na\r\n"));  // content: each chunk is progress, but of no use
}

TEST_F(HttpServiceTest, DrainClosesIdleConnectionsAndFinishesWhatWasAsked) {
  Start();
  RawClient idle(port());
  EXPECT_EQ(idle.Ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n").status, 200);
  RawClient busy(port());
  busy.Send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  while (server_->connections() < 2) std::this_thread::yield();
  server_->Drain(10s);
  EXPECT_EQ(server_->connections(), 0U);
  EXPECT_TRUE(idle.Ended());
  const RawResponse last = busy.ReadResponse();
  EXPECT_EQ(last.body, "GET /slow 0");
  EXPECT_EQ(last.Field("Connection"), "close");
}

TEST_F(HttpServiceTest, DrainIsBounded) {
  Start();
  RawClient stuck(port());
  stuck.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n");
  while (server_->connections() < 1) std::this_thread::yield();
  server_->Drain(50ms);
  EXPECT_EQ(server_->connections(), 0U);
}

TEST_F(HttpServiceTest, ConnectionsBeyondTheBoundWaitForTheirTurn) {
  Start({.close_time = 50ms}, {.max_connections = 2});  // one for each loop
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->Send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }
  for (auto& client : clients) EXPECT_EQ(client->ReadResponse().status, 200);
}

TEST(ListenTest, TellsThatAPortIsInUse) {
  EventLoops loops(2);
  const auto first = Listen(loops, {"127.0.0.1", 0});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->at(0).endpoint(), first->at(1).endpoint());
  const auto second = Listen(loops, {"127.0.0.1", first->at(0).endpoint().port()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(ListenTest, ListensOnIPv6) {
  EventLoops loops(1);
  const auto listeners = Listen(loops, {"::1", 0});
  ASSERT_TRUE(listeners.ok()) << listeners.status();
  EXPECT_NE(listeners->at(0).endpoint().port(), 0);
}

TEST(JsonStringTest, EscapesAndReplacesWhatIsNotUtf8) {
  std::string out;
  AppendJsonString("a\"\\\n\x7f\xc3\xa9\xff\xed\xa0\x80\xf0\x9f\x98\x80\xc0\xaf", &out);
  EXPECT_EQ(out,
            "\"a\\\"\\\\\\u000a\\u007f\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
            "\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace sluice::net
