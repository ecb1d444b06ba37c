// Every way in which a request can end, and what the books say of it: each admitted request is
// forwarded, failed or aborted, once.
#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

using ::testing::HasSubstr;

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string kGet = "GET / HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n";
const std::string kPost = "POST / HTTP/1.1\r\nHost: a\r\nK: ann\r\n";
const std::string kUpgrade =
    "GET / HTTP/1.1\r\nHost: a\r\nK: ann\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const std::string kSwitching =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
constexpr std::size_t kTooMuch = std::size_t{64} << 20;  // for the sockets on the way to hold

class BooksTest : public GatewayTest {
 protected:
  using GatewayTest::GatewayTest;

  // What happened since the last call, once nothing is in flight.
  struct Since {
    std::uint64_t forwarded = 0;
    std::uint64_t failed = 0;
    std::uint64_t aborted = 0;
    std::uint64_t denied = 0;
    friend bool operator==(const Since&, const Since&) = default;
    friend void PrintTo(const Since& since, std::ostream* out) {
      *out << since.forwarded << " forwarded, " << since.failed << " failed, " << since.aborted
           << " aborted, " << since.denied << " denied";
    }
  };
  Since Settled(std::uint64_t requests) {
    Until([&] {
      const BookTotals now = gateway_->counters().books;
      return now.in_flight() == 0 && now.admitted + now.denied == seen_ + requests;
    });
    const BookTotals now = gateway_->counters().books;
    seen_ = now.admitted + now.denied;
    EXPECT_EQ(gateway_->counters().requests, seen_);
    const BookTotals before = std::exchange(before_, now);
    const auto grown = [&](RequestEnd how) { return now.Ended(how) - before.Ended(how); };
    return {grown(RequestEnd::kForwarded), grown(RequestEnd::kFailed), grown(RequestEnd::kAborted),
            now.denied - before.denied};
  }
  // An upstream's connection on which a request's head has come.
  std::unique_ptr<RawClient> Asked() {
    auto upstream = std::make_unique<RawClient>(upstream_.Accept());
    EXPECT_THAT(upstream->ReadUntil("\r\n\r\n"), HasSubstr(" / HTTP/1.1\r\n"));
    return upstream;
  }
  [[nodiscard]] bool InFlight(std::uint64_t count) const {
    return gateway_->counters().books.in_flight() == count;
  }

  BookTotals before_;
  std::uint64_t seen_ = 0;
};

Limit Queue(Rate rate) { return *leaky_bucket::MakeLimit(rate, /*queue=*/10, /*wait=*/10h); }

TEST_F(BooksTest, AnAnswerThatWasPassedOnWholeIsForwardedWhateverItsStatus) {
  StartByHand({MakeRule("r", HeaderSource("K"), Window(100, 1min))});
  const struct {
    std::string request;
    std::string answer;
    bool to_head = false;
  } rows[] = {
      {kGet, kOk},
      {kGet, "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"},
      {kGet, "HTTP/1.1 503 Later\r\nContent-Length: 2\r\n\r\nno"},
      {kGet, "HTTP/1.1 204 No Content\r\n\r\n"},
      {kGet, "HTTP/1.1 103 Early Hints\r\n\r\n" + kOk},
      {kGet, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
      {"HEAD / HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n",
       "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true},
      {kPost + "Content-Length: 2\r\n\r\nhi", kOk},
      // Answered before the body has come: the rest of it is of no interest any more.
      {kPost + "Content-Length: 9\r\n\r\nhi", "HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno"},
      {kUpgrade, "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.request + row.answer);
    RawClient client(port());
    client.Send(row.request);
    const auto upstream = Asked();
    upstream->Send(row.answer);
    upstream->EndWriting();
    RawResponse response = client.ReadResponse(row.to_head);
    if (response.status == 103) response = client.ReadResponse();
    EXPECT_TRUE(response.complete);
    EXPECT_EQ(Settled(1), (Since{.forwarded = 1}));
  }
}

TEST_F(BooksTest, ARequestThatIsSentTwiceIsCountedOnce) {
  StartByHand();
  RawClient client(port());
  client.Send(kGet);
  auto first = Asked();
  first->Send(kOk);
  EXPECT_EQ(client.ReadResponse().status, 200);
  EXPECT_EQ(Settled(1), (Since{.forwarded = 1}));
  client.Send(kGet);
  first->ReadUntil("\r\n\r\n");
  first->Close();
  Asked()->Send(kOk);
  EXPECT_EQ(client.ReadResponse().status, 200);
  EXPECT_EQ(Settled(1), (Since{.forwarded = 1}));
  EXPECT_EQ(gateway_->counters().retries, 1U);
}

TEST_F(BooksTest, ATunnelIsForwardedWhenItEnds) {
  StartByHand();
  const struct {
    const char* what;
    std::function<void(RawClient& client, RawClient& upstream)> end;
  } rows[] = {
      {"both close",
       [](RawClient& client, RawClient& upstream) { client.Close(), upstream.Close(); }},
      {"the client resets", [](RawClient& client, RawClient&) { client.Reset(); }},
      {"the upstream resets", [](RawClient&, RawClient& upstream) { upstream.Reset(); }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    RawClient client(port());
    client.Send(kUpgrade);
    const auto upstream = Asked();
    upstream->Send(kSwitching);
    EXPECT_EQ(client.ReadResponse().status, 101);
    EXPECT_TRUE(InFlight(1));
    row.end(client, *upstream);
    EXPECT_EQ(Settled(1), (Since{.forwarded = 1}));
  }
}

TEST_F(BooksTest, AHalfClosedTunnelThroughWhichNothingPassesIsForwarded) {
  options_.response_timeout = 2s;  // also for the 101
  StartByHand();
  RawClient client(port());
  client.Send(kUpgrade);
  const auto upstream = Asked();
  upstream->Send(kSwitching);
  EXPECT_EQ(client.ReadResponse().status, 101);
  EXPECT_TRUE(InFlight(1));
  upstream->EndWriting();
  EXPECT_EQ(Settled(1), (Since{.forwarded = 1}));
}

TEST_F(BooksTest, WhatTheUpstreamDoesWrongIsFailed) {
  options_.response_timeout = 50ms;
  StartByHand();
  const struct {
    const char* what;
    std::string request;
    std::string answer;
    bool ends = true;
  } rows[] = {
      {"nothing", kGet, ""},
      {"nonsense", kGet, "SSH-2.0-x\r\n\r\n"},
      {"a 101 that nobody asked for", kGet, kSwitching},
      {"half a head", kGet, "HTTP/1.1 200 O"},
      {"half a body", kGet, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"},
      {"half a chunked body", kGet, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nha"},
      {"a chunk out of form", kGet, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"},
      {"no answer in time", kGet, "", false},
      {"an answer that stops", kGet, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", false},
      {"a body's head and no more", kPost + "Content-Length: 2\r\n\r\nhi", "HTTP", false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    RawClient client(port());
    client.Send(row.request);
    const auto upstream = Asked();
    upstream->Send(row.answer);
    if (row.ends) upstream->EndWriting();
    const RawResponse response = client.ReadResponse();
    EXPECT_FALSE(response.status == 200 && response.complete);
    EXPECT_EQ(Settled(1), (Since{.failed = 1}));
  }
}

// Places are counted for each loop.
class OneLoopBooksTest : public BooksTest {
 protected:
  OneLoopBooksTest() : BooksTest(/*loops=*/1) {}
};

TEST_F(OneLoopBooksTest, AnUpstreamThatIsNotThereOrHasNoPlaceIsFailed) {
  options_.upstream_connections = 1;
  options_.connect_timeout = 1s;  // also for the one that finds its place
  StartByHand();
  RawClient served(port());
  served.Send(kGet);
  const auto upstream = Asked();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->Send(kGet);
  }
  for (const auto& client : clients) EXPECT_EQ(client->ReadResponse().status, 503);
  upstream->Send(kOk);
  EXPECT_EQ(served.ReadResponse().status, 200);
  EXPECT_EQ(Settled(5), (Since{.forwarded = 1, .failed = 4}));

  upstream->Close();
  upstream_.Close();
  EXPECT_EQ(RawClient(port()).Ask(kPost + "Content-Length: 0\r\n\r\n").status, 502);
  EXPECT_EQ(Settled(1), (Since{.failed = 1}));
}

TEST_F(BooksTest, AnUpstreamThatTakesNoMoreOfABodyIsFailed) {
  options_.response_timeout = 50ms;
  StartByHand();
  RawClient client(port());
  client.Send(kPost + "Content-Length: 100000000\r\n\r\n");
  const auto upstream = Asked();
  std::thread sender([&] { client.Send(std::string(kTooMuch, 'x')); });
  EXPECT_EQ(client.ReadResponse().status, 504);
  sender.join();
  EXPECT_EQ(Settled(1), (Since{.failed = 1}));
}

TEST_F(BooksTest, WhatTheClientDoesIsAborted) {
  options_.body_timeout = 50ms;
  options_.write_timeout = 50ms;
  StartByHand();
  const std::string kChunked = kPost + "Transfer-Encoding: chunked\r\n\r\n";
  const std::string kEndless = "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n";
  const struct {
    const char* what;
    std::string request;
    std::string answer;
    std::function<void(RawClient& client, RawClient& upstream)> then;
  } rows[] = {
      {"leaves while it waits", kGet, "", [](RawClient& client, RawClient&) { client.Close(); }},
      {"leaves within the answer", kGet, kEndless + "some",
       [](RawClient& client, RawClient&) { client.Reset(); }},
      {"leaves before the answer's last part", kGet,
       "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
       [](RawClient& client, RawClient& upstream) {
         client.ReadUntil("\nhalf");
         client.Reset();
         upstream.Send("later");
       }},
      {"leaves within its body", kPost + "Content-Length: 9\r\n\r\nhi", "",
       [](RawClient& client, RawClient&) { client.Close(); }},
      {"a body out of form", kChunked + "2\r\nhi\r\nzz\r\n", "", nullptr},
      {"a body out of form, later", kChunked + "2\r\nhi\r\n", "",
       [](RawClient& client, RawClient&) { client.Send("zz\r\n"); }},
      {"a body that is slow", kChunked + "2\r\nhi\r\n", "", nullptr},
      {"a body that is slow while the answer comes", kChunked + "2\r\nhi\r\n", kEndless + "some",
       nullptr},
      {"reads nothing", kGet, kEndless,
       [](RawClient&, RawClient& upstream) { upstream.Send(std::string(kTooMuch, 'x')); }},
      {"leaves before it hears of the upgrade", kUpgrade, "",
       [](RawClient& client, RawClient&) { client.Reset(); }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    RawClient client(port());
    client.Send(row.request);
    RawClient upstream(upstream_.Accept());
    // A body that is bad from its first bytes may be given up before the upstream hears of it.
    if (row.request.find("zz") == std::string::npos) upstream.ReadUntil("\r\n\r\n");
    upstream.Send(row.answer);
    if (row.then) row.then(client, upstream);
    EXPECT_EQ(Settled(1), (Since{.aborted = 1}));
    EXPECT_EQ(gateway_->counters().upstream_errors, 0U);
  }
}

TEST_F(BooksTest, ARequestThatWaitsInAQueueIsInFlightUntilItLeavesOrIsAnswered) {
  StartByHand({MakeRule("q", HeaderSource("K"), Queue({.count = 2, .period = 1s}))});
  RawClient first(port());
  first.Send(kGet);
  Asked()->Send(kOk);
  EXPECT_EQ(Settled(1), (Since{.forwarded = 1}));
  RawClient patient(port());
  patient.Send(kGet);
  Until([&] { return InFlight(1); });
  RawClient leaver(port());
  leaver.Send(kGet);
  Until([&] { return InFlight(2); });
  leaver.Close();
  Until([&] { return InFlight(1); });
  Asked()->Send(kOk);
  EXPECT_EQ(patient.ReadResponse().status, 200);
  EXPECT_EQ(Settled(2), (Since{.forwarded = 1, .aborted = 1}));
}

TEST_F(BooksTest, WhatTheDrainBreaksOffIsAborted) {
  Rule queue = MakeRule("q", HeaderSource("Q"), Queue({.count = 1, .period = 1h}));
  queue.on_missing_key = OnMissingKey::kSkip;
  StartByHand({queue});
  std::vector<std::unique_ptr<RawClient>> clients;
  const auto send = [&](const std::string& bytes) -> RawClient& {
    clients.push_back(std::make_unique<RawClient>(port()));
    clients.back()->Send(bytes);
    return *clients.back();
  };
  send(kGet);
  const auto waited_for = Asked();
  send(kPost + "Content-Length: 9\r\n\r\nhi");
  const auto half_asked = Asked();
  RawClient& tunnelled = send(kUpgrade);
  const auto tunnel = Asked();
  tunnel->Send(kSwitching);
  EXPECT_EQ(tunnelled.ReadResponse().status, 101);
  RawClient& half_told = send(kGet);
  const auto telling = Asked();
  telling->Send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
  EXPECT_THAT(half_told.ReadUntil("half"), HasSubstr("200"));
  const std::string queued = "GET / HTTP/1.1\r\nHost: a\r\nQ: q\r\n\r\n";
  RawClient& at_once = send(queued);
  Asked()->Send(kOk);
  EXPECT_EQ(at_once.ReadResponse().status, 200);
  Until([&] { return InFlight(4); });  // its end may be counted after it was seen
  send(queued);
  Until([&] { return InFlight(5); });
  gateway_->Drain(50ms);
  EXPECT_EQ(Settled(6), (Since{.forwarded = 1, .aborted = 5}));
}

TEST_F(BooksTest, WhatIsDeniedStandsApartAndWhatIsRefusedUnaskedNowhere) {
  options_.health_path = "/health";
  StartByHand({MakeRule("r", HeaderSource("K"), Window(1, 1min))});
  RawClient client(port());
  client.Send(kGet);
  Asked()->Send(kOk);
  EXPECT_EQ(client.ReadResponse().status, 200);
  EXPECT_EQ(Settled(1), (Since{.forwarded = 1}));
  EXPECT_EQ(client.Ask(kGet).status, 429);
  EXPECT_EQ(client.Ask(kGet).status, 429);
  EXPECT_EQ(Get("/", "").status, 401);
  EXPECT_EQ(Get("/health").status, 200);
  EXPECT_EQ(Get("/%00").status, 400);
  EXPECT_EQ(Get("/", "Content-Length: +1\r\n").status, 400);
  EXPECT_EQ(Settled(3), (Since{.denied = 3}));
}

}  // namespace
}  // namespace sluice::gateway
