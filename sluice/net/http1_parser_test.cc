#include "sluice/net/http1_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::net {
namespace {

using namespace std::string_literals;
using Kind = BodyFraming::Kind;

// Scans and parses as a connection does. What is left over after the head is ignored.
HeadProblem ReadRequest(std::string_view bytes, RequestHead* head, const HeadLimits& limits = {}) {
  HeadScanner scanner;
  switch (scanner.Scan(bytes, limits)) {
    case HeadScanner::State::kNeedMore:
      return {-1, "incomplete"};
    case HeadScanner::State::kBad:
      return scanner.problem();
    case HeadScanner::State::kComplete:
      break;
  }
  return ParseRequestHead(bytes.substr(0, scanner.size()), head);
}

TEST(RequestHeadTest, GivesViewsIntoTheBytes) {
  const std::string bytes =
      "POST /v1/orders?x=1 HTTP/1.1\r\nHost: shop.example:80\r\nX-API-Key:  ann \t\r\n"
      "Content-Length: 12\r\nEmpty:\r\n\r\nbody";
  RequestHead head;
  ASSERT_TRUE(ReadRequest(bytes, &head).ok());
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/v1/orders?x=1");
  EXPECT_EQ(head.host, "shop.example:80");
  EXPECT_EQ(head.minor_version, 1);
  ASSERT_EQ(head.fields.size(), 4U);
  EXPECT_EQ(head.Find("x-api-key")->value, "ann");
  EXPECT_EQ(head.Find("empty")->value, "");
  EXPECT_EQ(head.Find("absent"), nullptr);
  EXPECT_EQ(head.framing.kind, Kind::kLength);
  EXPECT_EQ(head.framing.length, 12U);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_EQ(head.field_lines.data(), bytes.data() + bytes.find("Host"));
  EXPECT_TRUE(head.field_lines.ends_with("Empty:\r\n"));
}

TEST(RequestHeadTest, AHeadObjectCanBeUsedAgain) {
  RequestHead head;
  ASSERT_TRUE(ReadRequest("GET http://a/b HTTP/1.0\r\nConnection: x\r\nExpect: 100-continue\r\n"
                          "Content-Length: 3\r\n\r\n",
                          &head)
                  .ok());
  ASSERT_TRUE(ReadRequest("GET / HTTP/1.1\r\nHost: c\r\n\r\n", &head).ok());
  EXPECT_EQ(head.host, "c");
  EXPECT_FALSE(head.absolute_target);
  EXPECT_FALSE(head.connection_options);
  EXPECT_FALSE(head.expect_continue);
  EXPECT_FALSE(head.framing.has_body());
  EXPECT_TRUE(head.keep_alive);
}

struct Refusal {
  std::string bytes;
  int status;
};

void ExpectRefused(const std::vector<Refusal>& rows) {
  for (const Refusal& row : rows) {
    SCOPED_TRACE(::testing::PrintToString(row.bytes));
    RequestHead head;
    EXPECT_EQ(ReadRequest(row.bytes, &head).status, row.status);
  }
}

const std::string kGet = "GET / HTTP/1.1\r\nHost: a\r\n";
const std::string kPost = "POST / HTTP/1.1\r\nHost: a\r\n";

TEST(RequestHeadTest, RefusesRequestLinesOutOfForm) {
  ExpectRefused({
      {"GET\r\n\r\n", 400},
      {"GET /\r\n\r\n", 400},                                // HTTP/0.9
      {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},           // two spaces
      {"GET / a HTTP/1.1\r\nHost: a\r\n\r\n", 400},          // a space in the target
      {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400},           // a space at the end
      {"GET /\tHTTP/1.1\r\nHost: a\r\n\r\n", 400},           // a tab for a space
      {"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},            // not a token
      {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},           // a space in front
      {"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", 400},        // a control byte
      {"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"s, 400},         // NUL
      {"GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n", 400},        // DEL
      {"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400},         // a fragment
      {"GET / http/1.1\r\nHost: a\r\n\r\n", 400},            // lower case
      {"GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400},           // two digits
      {"GET / HTTP/1\r\nHost: a\r\n\r\n", 400},              // no minor version
      {"GET / ICY/1.1\r\nHost: a\r\n\r\n", 400},             // another protocol
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},            // a version not served
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},             // the preface of HTTP/2
      {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505},            //
      {"\x16\x03\x01\x02", 400},                             // TLS
      {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},            // only for OPTIONS
      {"GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400},            // no slash
      {"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},     // another scheme
      {"GET http:///b HTTP/1.1\r\nHost: a\r\n\r\n", 400},    // no host
      {"GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n", 400},      // two ports
      {"GET / HTTP/1.1\r\nHost: a:]\r\n\r\n", 400},          // a bracket that none opened
      {"GET / HTTP/1.1\r\nHost: a:80]\r\n\r\n", 400},        //
      {"GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", 400},          // a port that is no number
      {"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400},         // a bracket that none closes
      {"GET / HTTP/1.1\r\nHost: :80\r\n\r\n", 400},          // no host
      {"GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},  // a user name
      {"GET http://a?b HTTP/1.1\r\nHost: a\r\n\r\n", 400},   // a query without a path
      {"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 501},     // no tunnel
  });
}

TEST(RequestHeadTest, RefusesLinesThatDoNotEndInCrlf) {
  ExpectRefused({
      {"GET / HTTP/1.1\nHost: a\n\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\n\n", 400},
      {kGet + "X: a\rb\r\n\r\n", 400},
      {kGet + "X: a\r\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", 400},
      {"\n", 400},
  });
}

TEST(RequestHeadTest, RefusesFieldsThatAnotherReaderCouldReadOtherwise) {
  ExpectRefused({
      {kGet + "X : y\r\n\r\n", 400},                // a space before the colon
      {kGet + "X\t: y\r\n\r\n", 400},               //
      {kGet + ": y\r\n\r\n", 400},                  // no name
      {kGet + "X\r\n\r\n", 400},                    // no colon
      {kGet + "X Y: z\r\n\r\n", 400},               // a space in a name
      {kGet + "X\x80: z\r\n\r\n", 400},             // not ASCII
      {kGet + "X: a\0b\r\n\r\n"s, 400},             // NUL
      {kGet + "X: a\x0b\r\n\r\n", 400},             // vertical tab
      {kGet + "X: a\x7f\r\n\r\n", 400},             // DEL
      {kGet + "X: a\r\n b\r\n\r\n", 400},           // folded
      {kGet + "X: a\r\n\tb\r\n\r\n", 400},          //
      {kGet + " X: a\r\n\r\n", 400},                //
      {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},  // the first field folded
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {kGet + "Host: a\r\n\r\n", 400},
      {kGet + "host: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400},
      {"GET http://a/ HTTP/1.1\r\n\r\n", 400},  // HTTP/1.1 needs the field even so
      {kPost + "Expect: tea\r\n\r\n", 417},
  });
}

TEST(RequestHeadTest, RefusesLengthsAndCodingsThatAnotherReaderCouldReadOtherwise) {
  ExpectRefused({
      {kPost + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
      {kPost + "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400},
      {kPost + "Content-Length: 5, 5\r\n\r\n", 400},
      {kPost + "Content-Length: +5\r\n\r\n", 400},
      {kPost + "Content-Length: -5\r\n\r\n", 400},
      {kPost + "Content-Length: 0x5\r\n\r\n", 400},
      {kPost + "Content-Length: 5 \x0b\r\n\r\n", 400},
      {kPost + "Content-Length: 5.0\r\n\r\n", 400},
      {kPost + "Content-Length:\r\n\r\n", 400},
      {kPost + "Content-Length: 18446744073709551616\r\n\r\n", 400},
      {kPost + "Content-Length: 1000000000000000000\r\n\r\n", 400},
      {kPost + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {kPost + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400},
      {kPost + "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", 400},
      {kPost + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {kPost + "Transfer-Encoding: chunked, chunked\r\n\r\n", 400},
      {kPost + "Transfer-Encoding: chunked, identity\r\n\r\n", 400},
      {kPost + "Transfer-Encoding: chunked,\r\n\r\n", 400},
      {kPost + "Transfer-Encoding:\r\n\r\n", 400},
      {kPost + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {kPost + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {kPost + "Transfer-Encoding: xchunked\r\n\r\n", 501},
      {kPost + "Transfer-Encoding: \"chunked\"\r\n\r\n", 501},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
  });
}

TEST(RequestHeadTest, TakesWhatIsRareButRight) {
  const struct {
    std::string bytes;
    std::string_view path;
    std::string_view host;
    bool keep_alive;
    Kind kind;
  } rows[] = {
      {"GET http://b.example:8080/c?d HTTP/1.1\r\nHost: a\r\n\r\n", "/c?d", "b.example:8080", true,
       Kind::kNone},
      {"GET HTTP://b HTTP/1.1\r\nHost: a\r\n\r\n", "/", "b", true, Kind::kNone},
      {"OPTIONS http://b HTTP/1.1\r\nHost: a\r\n\r\n", "*", "b", true, Kind::kNone},
      {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "*", "a", true, Kind::kNone},
      {"GET / HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n", "/", "[2001:db8::1]:80", true,
       Kind::kNone},
      {"GET //a//b HTTP/1.1\r\nHost: a\r\n\r\n", "//a//b", "a", true, Kind::kNone},
      {"GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n", "/\xc3\xa9", "a", true, Kind::kNone},
      {"GET / HTTP/1.0\r\n\r\n", "/", "", false, Kind::kNone},
      {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "/", "", true, Kind::kNone},
      {"GET / HTTP/1.0\r\nConnection: close, keep-alive\r\n\r\n", "/", "", false, Kind::kNone},
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: x, CLOSE\r\n\r\n", "/", "a", false, Kind::kNone},
      {"BREW /pot HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "/pot", "a", true,
       Kind::kNone},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 007\r\n\r\n", "/", "a", true, Kind::kLength},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n", "/", "a", true,
       Kind::kChunked},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: \xff\xfe\r\n\r\n", "/", "a", true, Kind::kNone},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(testing::PrintToString(row.bytes));
    RequestHead head;
    const HeadProblem problem = ReadRequest(row.bytes, &head);
    ASSERT_TRUE(problem.ok()) << problem.reason;
    EXPECT_EQ(head.path, row.path);
    EXPECT_EQ(head.host, row.host);
    EXPECT_EQ(head.keep_alive, row.keep_alive);
    EXPECT_EQ(head.framing.kind, row.kind);
  }
}

TEST(HeadScannerTest, FindsTheSameEndHoweverTheBytesArrive) {
  const std::string bytes = "GET /abc HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\nGET /next";
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    HeadScanner scanner;
    auto state = HeadScanner::State::kNeedMore;
    for (std::size_t got = 0; state == HeadScanner::State::kNeedMore; got += step) {
      ASSERT_LE(got, bytes.size() + step);
      state = scanner.Scan(std::string_view(bytes).substr(0, got), {});
    }
    EXPECT_EQ(state, HeadScanner::State::kComplete);
    EXPECT_EQ(scanner.size(), bytes.find("GET /next"));
  }
}

TEST(HeadScannerTest, RefusesHeadsBeyondTheLimitsWhileTheyArrive) {
  const HeadLimits limits{.max_bytes = 100, .max_fields = 3};
  const std::string line = "GET / HTTP/1.1\r\n";
  const struct {
    std::string bytes;
    int status;
  } rows[] = {
      {line + "Host: a\r\nB: c\r\nD: e\r\n\r\n", 0},
      {line + "Host: a\r\nB: c\r\nD: e\r\nF: g\r\n", 431},  // a field too many, no end yet
      {line + "Host: a\r\nX: " + std::string(68, 'x') + "\r\n\r\n", 0},  // 100 bytes
      {line + "Host: a\r\nX: " + std::string(69, 'x') + "\r\n\r\n", 431},
      {"GET /" + std::string(96, 'x'), 431},  // a line that never ends
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.bytes);
    RequestHead head;
    EXPECT_EQ(ReadRequest(row.bytes, &head, limits).status, row.status);
  }
}

TEST(ResponseHeadTest, SaysHowTheBodyEnds) {
  const struct {
    std::string bytes;
    bool to_head;
    Kind kind;
    bool keep_alive;
  } rows[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, Kind::kLength, true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true, Kind::kNone, true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false, Kind::kNone, true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false, Kind::kChunked, true},
      {"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n", true, Kind::kNone, true},
      {"HTTP/1.1 200 OK\r\n\r\n", false, Kind::kUntilClose, false},
      {"HTTP/1.1 200 OK\r\n\r\n", true, Kind::kNone, true},
      {"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", false, Kind::kLength, false},
      {"HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n", false,
       Kind::kLength, true},
      {"HTTP/1.1 204 No Content\r\n\r\n", false, Kind::kNone, true},
      {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false, Kind::kNone, true},
      {"HTTP/1.1 100 Continue\r\n\r\n", false, Kind::kNone, true},
      {"HTTP/1.1 500 a b \xe4\r\nConnection: close\r\nContent-Length: 1\r\n\r\n", false,
       Kind::kLength, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.bytes);
    ResponseHead head;
    const HeadProblem problem = ParseResponseHead(row.bytes, row.to_head, &head);
    ASSERT_TRUE(problem.ok()) << problem.reason;
    EXPECT_EQ(head.framing.kind, row.kind);
    EXPECT_EQ(head.keep_alive, row.keep_alive);
  }
}

TEST(ResponseHeadTest, RefusesWhatIsOutOfForm) {
  for (const std::string& bytes : {
           "HTTP/1.1 20 OK\r\n\r\n"s,
           "HTTP/1.1 2000 OK\r\n\r\n"s,
           "HTTP/1.1 099 OK\r\n\r\n"s,
           "HTTP/1.1 200 O\0K\r\n\r\n"s,
           "HTTP/2.0 200 OK\r\n\r\n"s,
           "NOPE\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"s,
           "HTTP/1.1 200 OK\r\nX : y\r\n\r\n"s,
       }) {
    SCOPED_TRACE(testing::PrintToString(bytes));
    ResponseHead head;
    EXPECT_FALSE(ParseResponseHead(bytes, false, &head).ok());
  }
}

TEST(ListItemTest, SkipsWhiteSpaceAndEmptyItems) {
  std::vector<std::string> items;
  ForEachListItem(" a ,,\tb c ,", [&](std::string_view item) { items.emplace_back(item); });
  EXPECT_THAT(items, testing::ElementsAre("a", "b c"));
}

}  // namespace
}  // namespace sluice::net
