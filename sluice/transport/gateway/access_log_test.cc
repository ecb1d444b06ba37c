#include "sluice/transport/gateway/access_log.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;

class AccessLogTest : public ::testing::Test {
 protected:
  AccessLogTest() {
    request_.since_1970 = 1'796'043'927'123ms;  // 2026-11-30
    request_.client = "192.0.2.7";
    request_.peer = "10.0.0.2";
    request_.method = "GET";
    request_.target = "/v1/orders?api_key=secret";
    request_.host = "shop.example";
    request_.user_agent = "curl/8.1";
    request_.request_id = "9f";
    end_ = {.status = 200,
            .sent = 612,
            .received = 7,
            .duration = 12'345'678ns,
            .decision = "allowed",
            .rule = "api",
            .result = "forwarded",
            .upstream = "10.0.0.1:9000",
            .upstream_time = 9us};
  }
  std::string Line(AccessForm form, bool query = false) {
    const AccessLog log{.lines = *lines_, .form = form, .query = query};
    line_.Begin(log, request_);
    return std::string(line_.Finish(end_));
  }

  std::unique_ptr<LineWriter> lines_ = *LineWriter::Open({.path = "/dev/null"});
  AccessRequest request_;
  AccessEnd end_;
  AccessLine line_;
};

TEST_F(AccessLogTest, CombinedIsWhatOtherToolsRead) {
  EXPECT_EQ(Line(AccessForm::kCombined),
            "192.0.2.7 - - [30/Nov/2026:13:05:27 +0000] \"GET /v1/orders HTTP/1.1\" 200 612 \"-\" "
            "\"curl/8.1\"\n");
  request_.minor_version = 0;
  request_.since_1970 = 951'782'400'000ms;
  request_.referer = "https://a.example/";
  request_.user_agent = "";
  end_.status = 0;
  end_.sent = 0;
  EXPECT_EQ(Line(AccessForm::kCombined, true),
            "192.0.2.7 - - [29/Feb/2000:00:00:00 +0000] "
            "\"GET /v1/orders?api_key=secret HTTP/1.0\" 499 0 \"https://a.example/\" \"-\"\n");
  request_ = {.client = "::1"};
  end_.status = 400;
  EXPECT_EQ(Line(AccessForm::kCombined),
            "::1 - - [01/Jan/1970:00:00:00 +0000] \"-\" 400 0 \"-\" \"-\"\n");
}

TEST_F(AccessLogTest, JsonTellsAllThatIsKnown) {
  EXPECT_EQ(Line(AccessForm::kJson),
            R"({"time":"2026-11-30T13:05:27.123Z","client":"192.0.2.7","peer":"10.0.0.2",)"
            R"("method":"GET","path":"/v1/orders","protocol":"HTTP/1.1","host":"shop.example",)"
            R"("user_agent":"curl/8.1","referer":"","request_id":"9f","status":200,)"
            R"("bytes_sent":612,"bytes_received":7,"duration_ms":12.345,"decision":"allowed",)"
            R"("rule":"api","result":"forwarded","upstream":"10.0.0.1:9000",)"
            R"("upstream_ms":0.009})"
            "\n");
  request_ = {.client = "::1", .peer = "::1"};
  end_ = {.status = 431, .decision = "none", .result = "refused"};
  EXPECT_EQ(Line(AccessForm::kJson),
            R"({"time":"1970-01-01T00:00:00.000Z","client":"::1","peer":"::1","method":null,)"
            R"("path":null,"protocol":null,"host":"","user_agent":"","referer":"",)"
            R"("request_id":"","status":431,"bytes_sent":0,"bytes_received":0,)"
            R"("duration_ms":0.000,"decision":"none","rule":null,"result":"refused",)"
            R"("upstream":null,"upstream_ms":null})"
            "\n");
}

TEST_F(AccessLogTest, WhatAClientSendsStaysInsideItsPlace) {
  std::string evil = "\"}\n{\"status\":200}\\x\t\x7f\xc3\xa4\xff\xe2\x82";
  evil.push_back('\0');
  request_.method = request_.target = request_.user_agent = request_.referer = evil;
  request_.host = request_.request_id = evil;
  const std::string combined = Line(AccessForm::kCombined);
  EXPECT_EQ(combined.find('\n'), combined.size() - 1);
  const std::string escaped =
      R"(\x22}\x0A{\x22status\x22:200}\x5Cx\x09\x7F\xC3\xA4\xFF\xE2\x82\x00)";
  EXPECT_EQ(combined, "192.0.2.7 - - [30/Nov/2026:13:05:27 +0000] \"" + escaped + " " + escaped +
                          " HTTP/1.1\" 200 612 \"" + escaped + "\" \"" + escaped + "\"\n");
  const std::string json = Line(AccessForm::kJson);
  EXPECT_EQ(json.find('\n'), json.size() - 1);
  const boost::json::value parsed = boost::json::parse(json);
  EXPECT_EQ(parsed.at("status"), 200);
  std::string kept = "\"}\n{\"status\":200}\\x\t\x7f\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd";
  kept.push_back('\0');
  EXPECT_EQ(parsed.at("user_agent").as_string(), kept);
  EXPECT_EQ(parsed.at("path").as_string(), kept);
}

TEST_F(AccessLogTest, ALongTextIsCut) {
  const std::string text(kMaxAccessText + 1, 'x');
  request_.target = request_.user_agent = text;
  EXPECT_EQ(boost::json::parse(Line(AccessForm::kJson)).at("path").as_string().size(),
            kMaxAccessText);
  EXPECT_LT(Line(AccessForm::kCombined).size(), 2 * kMaxAccessText + 100);
}

}  // namespace
}  // namespace sluice::gateway
