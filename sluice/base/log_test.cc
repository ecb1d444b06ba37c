#include "sluice/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::log {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

class LogTest : public testing::Test {
 protected:
  LogTest() {
    SetSink([this](std::string_view line) { lines_.emplace_back(line); });
  }
  ~LogTest() override {
    SetSink(nullptr);
    Configure(Level::kInfo, Format::kText);
  }

  std::vector<std::string> lines_;
};

TEST_F(LogTest, WritesTimeLevelMessageAndFieldsForAPerson) {
  Configure(Level::kInfo, Format::kText);
  Warning("store slow", {{"store", "redis one"}, {"ms", 12}, {"open", true}});
  EXPECT_THAT(lines_, ElementsAre(MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9:]+\\.[0-9]+Z warning "
                                               "store slow store=\"redis one\" ms=12 open=true")));
}

TEST_F(LogTest, WritesOneJsonObjectALine) {
  Configure(Level::kInfo, Format::kJson);
  Info("listening", {{"door", "gateway"}, {"port", 8080}});
  EXPECT_THAT(lines_,
              ElementsAre(MatchesRegex("\\{\"time\":\"[^\"]+Z\",\"level\":\"info\",\"message\":"
                                       "\"listening\",\"door\":\"gateway\",\"port\":8080\\}")));
}

TEST_F(LogTest, LeavesOutWhatIsBelowTheLevel) {
  Configure(Level::kError, Format::kText);
  Info("chatter");
  Warning("chatter");
  EXPECT_TRUE(lines_.empty());
  Configure(Level::kOff, Format::kText);
  Error("chatter");
  EXPECT_TRUE(lines_.empty());
}

TEST_F(LogTest, PatternLettersInAMessageAreText) {
  Configure(Level::kInfo, Format::kText);
  Info("100%v {}", {{"path", "/a%20b"}});
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_THAT(lines_[0], testing::EndsWith("100%v {} path=/a%20b"));
}

TEST(LogLineTest, NoValueCanStartASecondLine) {
  EXPECT_EQ(TextLine("bad\nrequest", {{"path", "/a\r\nb\x1b[1m"}}),
            "bad\\x0arequest path=\"/a\\x0d\\x0ab\\x1b[1m\"");
  EXPECT_EQ(JsonMembers("m", {{"k", "a\"b\\c\n\xff"}}),
            R"("message":"m","k":"a\"b\\c\u000a\u00ff")");
}

TEST(LogLineTest, AnEmptyValueIsVisible) { EXPECT_EQ(TextLine("m", {{"k", ""}}), "m k=\"\""); }

}  // namespace
}  // namespace sluice::log
