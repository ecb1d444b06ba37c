#include "sluice/config/redis_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sluice::config {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(RedisUrl, IsReadInAllItsForms) {
  const struct {
    std::string_view text;
    RedisUrl url;
    std::string_view shown;  // without the password
  } rows[] = {
      {"redis://h", {.host = "h", .port = 6379}, "redis://h"},
      {"redis://h/", {.host = "h", .port = 6379}, "redis://h"},
      {"redis://h/0", {.host = "h", .port = 6379}, "redis://h"},
      {"redis://10.0.0.7:1/65535",
       {.host = "10.0.0.7", .port = 1, .database = 65535},
       "redis://10.0.0.7:1/65535"},
      {"redis://[::1]", {.host = "::1", .port = 6379}, "redis://[::1]"},
      {"redis://[2001:db8::7]:65535/2",
       {.host = "2001:db8::7", .port = 65535, .database = 2},
       "redis://[2001:db8::7]:65535/2"},
      {"rediss://my_redis.example-1.com:6380",
       {.tls = true, .host = "my_redis.example-1.com", .port = 6380},
       "rediss://my_redis.example-1.com:6380"},
      {"redis://ann:s3cret@h",
       {.user = "ann", .password = "s3cret", .host = "h", .port = 6379},
       "redis://ann@h"},
      {"redis://:s3cret@h", {.password = "s3cret", .host = "h", .port = 6379}, "redis://h"},
      {"redis://ann@h:7", {.user = "ann", .host = "h", .port = 7}, "redis://ann@h:7"},
      {"redis://a%3ab%40:%25%2F%3f%23%ff+@h",
       {.user = "a:b@", .password = "%/?#\xff+", .host = "h", .port = 6379},
       "redis://a%3Ab%40@h"},
      {"unix:///run/redis.sock", {.unix_socket = "/run/redis.sock"}, "unix:///run/redis.sock"},
      {"unix:///a%20b?db=1", {.unix_socket = "/a b", .database = 1}, "unix:///a%20b?db=1"},
      {"unix://ann:pw@/r:s",
       {.user = "ann", .password = "pw", .unix_socket = "/r:s"},
       "unix://ann@/r%3As"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    const absl::StatusOr<RedisUrl> url = ParseRedisUrl(row.text);
    ASSERT_TRUE(url.ok()) << url.status();
    EXPECT_EQ(*url, row.url);
    EXPECT_EQ(ToString(*url), row.shown);
    RedisUrl open = *url;
    open.password.clear();
    EXPECT_EQ(*ParseRedisUrl(row.shown), open);
  }
}

TEST(RedisUrl, WhatIsNotOfThisFormIsRefusedAndNotRepeated) {
  const std::string long_path = "unix:///" + std::string(107, 's');
  const struct {
    std::string_view text;
    std::string_view why;
  } rows[] = {
      {"", "begins with"},
      {"h:6379", "begins with"},
      {"http://s3cret@h", "begins with"},
      {"REDIS://h", "begins with"},
      {"redis:/h", "begins with"},
      {"redis://", "stands a host"},
      {"redis://s3cret:s3cret@", "stands a host"},
      {"redis://:6379", "stands a host"},
      {"redis:///1", "stands a host"},
      {"redis://a%20b", "stands a host"},
      {"redis://::1", "stands a host"},
      {"redis://[::1", "IPv6"},
      {"redis://[]", "IPv6"},
      {"redis://[127.0.0.1]", "IPv6"},
      {"redis://[::1]6379", "IPv6"},
      {"redis://h:", "port"},
      {"redis://h:0", "port"},
      {"redis://h:65536", "port"},
      {"redis://h:+1", "port"},
      {"redis://h:6379x", "port"},
      {"redis://ann:s3cret", "port"},  // the @ is missing
      {"redis://h/65536", "database"},
      {"redis://h/-1", "database"},
      {"redis://h/1/", "database"},
      {"redis://h/one", "database"},
      {"redis://h?db=1", "no ?"},
      {"redis://h/1#x", "no #"},
      {"redis://@h", "leave out"},
      {"redis://ann:@h", "leave out"},
      {"redis://:@h", "leave out"},
      {"redis://ann:s3cret:s3cret@h", "%3A"},
      {"redis://ann:s3cret/@h", "%2F"},
      {"redis://ann:s3cret@s3cret@h", "%40"},
      {"redis://ann:s3cret%@h", "%25"},
      {"redis://ann:s3cret%4@h", "%25"},
      {"redis://ann:s3cret%0g@h", "%25"},
      {"redis://s3cret%00:s3cret@h", "other than 00"},
      {"redis://ann:s3 cret@h", "no blanks"},
      {"redis://ann:s3cret\xc3\xa4@h", "ASCII"},
      {"unix://", "begins with /"},
      {"unix://run/redis.sock", "begins with /"},
      {"unix:///", "at least one"},
      {long_path, "at most 107"},
      {"unix:///r?", "?db=N"},
      {"unix:///r?db", "?db=N"},
      {"unix:///r?db=", "database"},
      {"unix:///r?db=1&db=2", "database"},
      {"unix:///r#db=1", "?db=N"},
      {"unix:///r%2", "%25"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    const absl::Status status = ParseRedisUrl(row.text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.why));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("s3")));
  }
}

}  // namespace
}  // namespace sluice::config
