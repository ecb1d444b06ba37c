// Answers that go on for long, piece by piece: server-sent events and the like.
#include "sluice/net/http1_body.h"
#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

const std::string kAsk =
    "GET /events HTTP/1.1\r\nHost: a\r\nK: ann\r\nAccept: text/event-stream\r\n\r\n";

TEST_F(GatewayTest, EachEventPassesAtOnce) {
  StartByHand();
  for (const bool chunked : {true, false}) {
    SCOPED_TRACE(chunked ? "in chunks" : "until the connection ends");
    RawClient client(port());
    client.Send(kAsk);
    RawClient upstream(upstream_.Accept());
    upstream.ReadUntil("\r\n\r\n");
    const std::string framing = chunked ? "Transfer-Encoding: chunked\r\n" : "";
    upstream.Send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + framing + "\r\n");
    client.ReadUntil("\r\n\r\n");  // the head does not wait for the first event
    for (int i = 0; i < 20; ++i) {
      const std::string event = "id: " + std::to_string(i) + "\ndata: tick\n\n";
      const std::string chunk = std::string(net::ChunkLine(event.size()).view()) + event + "\r\n";
      upstream.Send(chunked ? chunk : event);
      EXPECT_EQ(client.ReadExactly(chunk.size()), chunk);
    }
    if (chunked) upstream.Send("0\r\n\r\n");
    upstream.Close();
    EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "0\r\n\r\n");
  }
}

TEST_F(GatewayTest, AStreamHoldsItsSlotUntilItEnds) {
  StartByHand({MakeRule("slots", HeaderSource("K"), Slots(1, 150ms))});
  const auto held = [&] { return Look("ann").answer == Answer::kLimited; };
  for (const bool client_leaves : {true, false}) {
    SCOPED_TRACE(client_leaves ? "the client leaves" : "the upstream ends it");
    RawClient client(port());
    client.Send(kAsk);
    RawClient upstream(upstream_.Accept());
    upstream.ReadUntil("\r\n\r\n");
    upstream.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.ReadUntil("\r\n\r\n");
    for (int i = 0; i < 4; ++i) {
      clock_.Advance(140ms);  // longer than it would last without being renewed
      ASSERT_TRUE(held());
      Until([&] { return Look("ann").claims[0].decision.retry_after > 100ms; });
      upstream.Send("2\r\n\n\n\r\n");
      ASSERT_EQ(client.ReadExactly(7), "2\r\n\n\n\r\n");
    }
    if (client_leaves) {
      client.Close();
    } else {
      upstream.Send("0\r\n\r\n");
      EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "0\r\n\r\n");
    }
    Until([&] { return !held(); });
  }
}

}  // namespace
}  // namespace sluice::gateway
