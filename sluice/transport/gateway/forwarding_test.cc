#include "sluice/transport/gateway/forwarding.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "sluice/transport/gateway/request_id.h"

namespace sluice::gateway {
namespace {

// The lines that are kept of `fields`, then what is written.
std::string Told(const std::string& fields, Hop hop) {
  const std::string bytes = "GET / HTTP/1.1\r\nHost: a:80\r\n" + fields + "\r\n";
  net::RequestHead head;
  EXPECT_TRUE(net::ParseRequestHead(bytes, &head).ok()) << fields;
  hop.request_id = "7";
  ForwardingFields forwarding(head, hop);
  std::string out;
  for (const net::Field& field : head.fields) {
    if (field.id == net::FieldId::host || field.id == net::FieldId::connection) continue;
    if (head.NamedByConnection(field) || !forwarding.Keeps(field)) continue;
    out.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  forwarding.Append(&out);
  return out;
}

const std::string kEnd = "Via: 1.1 sluice\r\nX-Request-Id: 7\r\n";
const std::string kOurs =
    "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a:80\r\n" + kEnd;

TEST(ForwardingFieldsTest, ReplacesWhatAClientSaysOfItself) {
  for (const char* fields :
       {"", "X-Forwarded-For: 1.2.3.4\r\n", "x-forwarded-for: 1.2.3.4\r\nX-FORWARDED-FOR: ::1\r\n",
        "X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Port: 1\r\n",
        "X-Forwarded-Prefix: /admin\r\nX-Forwarded-Anything: 1\r\nX-Forwarded-: 1\r\n",
        "X-Real-IP: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\nX-Request-ID: guessed\r\n",
        "X_Forwarded_For: 1.2.3.4\r\nX-Forwarded_For: 1.2.3.4\r\nX.Forwarded.For: 1.2.3.4\r\n",
        "x_real_ip: 1.2.3.4\r\nX~Request~Id: 1\r\nX_Forwarded-Proto: https\r\n"}) {
    EXPECT_EQ(Told(fields, {.peer = "9.9.9.9"}), kOurs) << fields;
  }
  // What only looks alike passes, and so does what an earlier proxy of its own was called.
  const std::string others =
      "X-Forwarded: 1\r\nX-Forwarded1For: 1\r\nX-Real-IPs: 1\r\nX-Request-Ids: 1\r\n"
      "X_API_Key: 1\r\nFrom: me\r\nVia: 1.0 fred\r\n";
  EXPECT_EQ(Told(others, {.peer = "9.9.9.9"}), others + kOurs);
}

TEST(ForwardingFieldsTest, KeepsWhatATrustedProxySays) {
  const std::string kept =
      "X-Forwarded-Proto: https\r\nX-Forwarded-Host: shop\r\nX-Forwarded-Port: 443\r\n"
      "X-Real-IP: 1.2.3.4\r\n";
  const Hop hop{.peer = "10.0.0.1", .trusted = true};
  EXPECT_EQ(Told("X-Forwarded-For: 1.1.1.1\r\nx-forwarded-for: 2.2.2.2\r\n" + kept, hop),
            kept + "X-Forwarded-For: 1.1.1.1, 2.2.2.2, 10.0.0.1\r\n" + kEnd);
  const std::string ours =
      "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a:80\r\n" + kEnd;
  const struct {
    std::string_view what;
    std::string fields;
  } rows[] = {
      {"nothing said", ""},
      {"an empty chain", "X-Forwarded-For:\r\n"},
      {"a chain for this connection alone",
       "X-Forwarded-For: 1.2.3.4\r\nConnection: x-forwarded-for\r\n"},
      {"twins, which it has only passed on",
       "X_Forwarded_For: 1.2.3.4\r\nX-Forwarded_Proto: https\r\nx_real_ip: 1\r\nX_Request_Id: "
       "1\r\n"},
      {"the chain that it does not write", "Forwarded: for=1.2.3.4\r\n"},
  };
  for (const auto& row : rows) EXPECT_EQ(Told(row.fields, hop), ours) << row.what;
}

TEST(ForwardingFieldsTest, SpeaksAsTheTrustedProxiesDo) {
  Hop hop{.peer = "10.0.0.1", .trusted = true, .chain = ForwardedHeader::kForwarded};
  const std::string begin =
      "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a:80\r\n"
      "Forwarded: ";
  const std::string our_element = "for=10.0.0.1;host=\"a:80\";proto=http\r\n";
  EXPECT_EQ(Told("", hop), begin + our_element + kEnd);
  // The chain that it passes on unread begins anew.
  EXPECT_EQ(Told("forwarded: for=1.1.1.1\r\nX-Forwarded-For: 6.6.6.6\r\nForwarded: "
                 "for=2.2.2.2;proto=https\r\n",
                 hop),
            begin + "for=1.1.1.1, for=2.2.2.2;proto=https, " + our_element + kEnd);
  hop.trusted = false;
  EXPECT_EQ(Told("Forwarded: for=1.1.1.1\r\n", hop), begin + our_element + kEnd);
  hop.peer = "2001:db8::1";
  hop.scheme = "https";
  EXPECT_EQ(Told("", hop),
            "X-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a:80\r\n"
            "Forwarded: for=\"[2001:db8::1]\";host=\"a:80\";proto=https\r\n" +
                kEnd);
}

TEST(ForwardingFieldsTest, NamesTheVersionAndNoHostThatNobodyGave) {
  net::RequestHead head;
  ASSERT_TRUE(net::ParseRequestHead("GET / HTTP/1.0\r\n\r\n", &head).ok());
  const Hop hop{.peer = "9.9.9.9", .request_id = "7"};
  std::string out;
  ForwardingFields(head, hop).Append(&out);
  EXPECT_EQ(out,
            "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: http\r\nVia: 1.0 sluice\r\n"
            "X-Request-Id: 7\r\n");
}

TEST(RequestIdTest, IsKeptFromATrustedProxyIfItIsInForm) {
  const struct {
    std::string fields;
    std::string_view kept;
  } rows[] = {
      {"X-Request-Id: 0af7-65.1:b/c+d=e@f_g\r\n", "0af7-65.1:b/c+d=e@f_g"},
      {"x-request-ID: " + std::string(128, 'a') + "\r\n", std::string_view("aaaaaaaa")},
      {"X-Request-Id: " + std::string(129, 'a') + "\r\n", ""},
      {"X-Request-Id:\r\n", ""},
      {"X-Request-Id: a b\r\n", ""},
      {"X-Request-Id: a\"b\r\n", ""},
      {"X-Request-Id: a\r\nX-Request-Id: a\r\n", ""},
      {"X_Request_Id: a\r\n", ""},
  };
  for (const auto& row : rows) {
    const std::string bytes = "GET / HTTP/1.1\r\nHost: a\r\n" + row.fields + "\r\n";
    net::RequestHead head;
    ASSERT_TRUE(net::ParseRequestHead(bytes, &head).ok());
    const std::string_view kept = KeptRequestId(head, /*trusted=*/true);
    EXPECT_EQ(kept.substr(0, 8), row.kept.substr(0, 8)) << row.fields;
    EXPECT_EQ(KeptRequestId(head, /*trusted=*/false), "") << row.fields;
  }
}

TEST(RequestIdTest, NoTwoAreAlike) {
  RequestIds ids;
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    std::string id;
    ids.Append(&id);
    EXPECT_EQ(id.size(), 32U);
    EXPECT_TRUE(IsRequestId(id));
    EXPECT_TRUE(seen.insert(id).second);
  }
}

}  // namespace
}  // namespace sluice::gateway
