// Requests whose body is longer than limits.body_bytes.
#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kPost = "POST / HTTP/1.1\r\nHost: a\r\nK: ann\r\n";
const std::string kNext = "GET /next HTTP/1.1\r\nHost: a\r\nK: ann\r\n\r\n";
const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

class BodyBytesTest : public GatewayTest {
 protected:
  BodyBytesTest() { options_.body_bytes = 10; }

  void ExpectRefused(RawClient& client) {
    const RawResponse response = client.ReadResponse();
    EXPECT_EQ(response.status, 413);
    EXPECT_EQ(response.Field("Content-Type"), "application/problem+json");
    EXPECT_EQ(response.Field("Connection"), "close");
    EXPECT_TRUE(response.complete);
    EXPECT_TRUE(client.Ended());  // what follows is never read as a request
  }
};

TEST_F(BodyBytesTest, ALengthThatIsTooLongIsRefusedBeforeAnythingIsCharged) {
  StartByHand({MakeRule("r", HeaderSource("K"), Window(1, 1min))});
  for (const std::string& rest : {
           std::string("Content-Length: 11\r\n\r\nhello world" + kNext),
           std::string("Content-Length: 11\r\n\r\nhell"),
           std::string("Content-Length: 999999999999\r\n\r\n"),
           std::string("Content-Length: 11\r\nExpect: 100-continue\r\n\r\n"),
       }) {
    SCOPED_TRACE(rest);
    RawClient client(port());
    client.Send(kPost + rest);
    ExpectRefused(client);
  }
  EXPECT_EQ(gateway_->counters().requests, 0U);
  EXPECT_EQ(Look("ann").claims[0].decision.remaining, 1U);
}

TEST_F(BodyBytesTest, ABodyThatJustFitsPassesInEitherForm) {
  StartByHand();
  RawClient client(port());
  client.Send(kPost + "Content-Length: 10\r\n\r\n0123456789");
  RawClient upstream(upstream_.Accept());
  EXPECT_THAT(upstream.ReadUntil("\n0123456789"), HasSubstr("Content-Length: 10"));
  upstream.Send(kOk);
  EXPECT_EQ(client.ReadResponse().body, "ok");
  client.Send(kPost + "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n");
  EXPECT_THAT(upstream.ReadUntil("\n0\r\n\r\n"), HasSubstr("56789"));
  upstream.Send(kOk);
  EXPECT_EQ(client.ReadResponse().body, "ok");
}

TEST_F(BodyBytesTest, AChunkedBodyThatGrowsBeyondItIsNeverSeenAsWhole) {
  StartByHand();
  const std::string chunked = kPost + "Transfer-Encoding: chunked\r\n\r\n";
  const struct {
    const char* what;
    std::string first;
    std::string second;
  } rows[] = {
      {"at once", chunked + "b\r\nhello world\r\n0\r\n\r\n" + kNext, ""},
      {"later", chunked + "5\r\nhello\r\n", "6\r\n world\r\n0\r\n\r\n" + kNext},
      {"within a chunk", chunked + "fffff\r\nhello", " world"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    RawClient client(port());
    client.Send(row.first);
    RawClient upstream(upstream_.Accept());
    if (!row.second.empty()) upstream.ReadUntil("\nhello");
    client.Send(row.second);
    ExpectRefused(client);
    EXPECT_THAT(upstream.ReadToEnd(), Not(HasSubstr("0\r\n\r\n")));
  }
  EXPECT_EQ(gateway_->counters().books.Ended(RequestEnd::kAborted), 3U);
  EXPECT_EQ(gateway_->counters().upstream_errors, 0U);
}

TEST_F(BodyBytesTest, AnAnswerThatHasBegunIsBrokenOff) {
  StartByHand();
  RawClient client(port());
  client.Send(kPost + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  RawClient upstream(upstream_.Accept());
  upstream.ReadUntil("\nhello");
  upstream.Send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
  EXPECT_THAT(client.ReadUntil("\nhalf"), HasSubstr("200 OK"));
  client.Send("6\r\n world\r\n0\r\n\r\n");
  EXPECT_EQ(client.ReadToEnd(), "");
  EXPECT_THAT(upstream.ReadToEnd(), Not(HasSubstr("0\r\n\r\n")));
}

}  // namespace
}  // namespace sluice::gateway
