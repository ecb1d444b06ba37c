#include "sluice/transport/dialects.h"

#include <gtest/gtest.h>

namespace sluice::transport {
namespace {

TEST(LimitFieldTest, IsFoundByItsNameWhateverTheCase) {
  for (std::size_t i = 0; i < kLimitFields; ++i) {
    const auto field = static_cast<LimitField>(i);
    EXPECT_EQ(FindLimitField(NameOf(field)), field) << NameOf(field);
  }
  EXPECT_EQ(FindLimitField("ratelimit"), LimitField::kRateLimit);
  EXPECT_EQ(FindLimitField("x-ratelimit-reset"), LimitField::kXReset);
  for (const auto* other : {"", "R", "RateLimits", "X-RateLimit", "X-Rate-Limit-Reset", "Server"}) {
    EXPECT_EQ(FindLimitField(other), std::nullopt) << other;
  }
}

TEST(UpstreamLimitsTest, SeveralLinesAreOneList) {
  UpstreamLimits said;
  said.Add(LimitField::kRateLimit, "a");
  said.Add(LimitField::kRateLimit, "");
  said.Add(LimitField::kRateLimit, "b");
  EXPECT_EQ(said[LimitField::kRateLimit], "a, b");
  EXPECT_EQ(said[LimitField::kPolicy], "");
  said.Clear();
  EXPECT_EQ(said[LimitField::kRateLimit], "");
}

TEST(ListOfStringsTest, TakesWhatCanFollowOursInOneField) {
  for (const auto* text :
       {R"("a")", R"("a";r=1;t=9)", R"("a";q=1;w=60, "b";r=0)", R"( "a"  ,	"b" )",
        R"("a\"b\\";r=1)", R"("a";r=-1.5;b;c=?1;d=tok/en:x;e=123456789012345)",
        R"("a;,b";pk=:ZGVtbw==:;x="y,z";*k-1.2=?0)", R"("a"; r=1)"}) {
    EXPECT_TRUE(IsListOfStrings(text)) << text;
  }
  for (const auto* text : {"",
                           " ",
                           "limit=100, remaining=5, reset=3",
                           "100;w=60",
                           "a;r=1",
                           R"("a")"
                           R"("b")",
                           R"("a";r=1,)",
                           R"(, "a")",
                           R"("a)",
                           R"("a\)",
                           R"("a\n")",
                           R"("a";)",
                           R"("a";r=)",
                           R"("a";r= 1)",
                           R"("a";pk=:ab)",
                           R"("a";pk=:not base64:)",
                           R"("a";q=[]{})",
                           R"("a";q=9@)",
                           R"("a";Q=1)",
                           "\"a\";\tr=1",
                           R"("a";r=1.)",
                           R"("a";r=-)",
                           R"("a";r=1.2.3)",
                           R"("a";r=1e5)",
                           R"("a";r=?2)",
                           R"("a";r=1234567890123456)",
                           R"("a";r=1.2345)",
                           R"("a" ;r=1)",
                           "\"\xc3\xa4\"",
                           R"("a";r=1, 100;w=60)"}) {
    EXPECT_FALSE(IsListOfStrings(text)) << text;
  }
}

TEST(SaidOfOneTest, IsReadOnlyFromTheFormOfItsDialect) {
  const auto said = ReadDictionary("limit=100, remaining=5,reset=30");
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(said->remaining, 5U);
  EXPECT_EQ(said->reset, 30U);
  for (const auto* text : {"", "remaining=5", "reset=3", R"("a";r=1;t=2)", "remaining=x, reset=1",
                           "remaining=-1, reset=1", "remaining=1.5, reset=1"}) {
    EXPECT_FALSE(ReadDictionary(text).has_value()) << text;
  }
  EXPECT_EQ(ReadNumbers("7", "1700000030")->reset, 1'700'000'030U);
  for (const auto* text : {"", "+1", "5, 5", "1s", "9999999999999999"}) {
    EXPECT_FALSE(ReadNumbers(text, "1").has_value()) << text;
    EXPECT_FALSE(ReadNumbers("1", text).has_value()) << text;
  }
}

}  // namespace
}  // namespace sluice::transport
