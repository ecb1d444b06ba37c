#include "sluice/transport/gateway/upgrade.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::gateway {
namespace {

const std::vector<std::string> kAllowed = {"websocket", "ssh"};

TEST(UpgradeTest, OnlyWhatIsAllowedIsAskedFor) {
  const struct {
    std::string fields;
    std::string_view asked;
  } rows[] = {
      {"Connection: Upgrade\r\nUpgrade: websocket\r\n", "websocket"},
      {"connection: keep-alive, UPGRADE\r\nupgrade: WebSocket\r\n", "WebSocket"},
      {"Connection: Upgrade\r\nUpgrade: h2c, ssh/2.0 , websocket\r\n", "ssh/2.0, websocket"},
      {"Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n", "websocket"},
      {"Connection: close\r\nConnection: upgrade\r\nUpgrade: websocket\r\n", "websocket"},
      {"Connection: Upgrade\r\nUpgrade: h2c\r\n", ""},
      {"Connection: Upgrade\r\nUpgrade: websockets\r\n", ""},
      {"Connection: Upgrade\r\nUpgrade:\r\n", ""},
      {"Connection: Upgrade\r\n", ""},
      {"Upgrade: websocket\r\n", ""},  // Connection must say that it is meant for us
      {"Connection: websocket\r\nUpgrade: websocket\r\n", ""},
  };
  for (const auto& row : rows) {
    const std::string bytes = "GET / HTTP/1.1\r\nHost: a\r\n" + row.fields + "\r\n";
    net::RequestHead head;
    ASSERT_TRUE(net::ParseRequestHead(bytes, &head).ok());
    std::string asked = "of the request before";
    ReadUpgrade(head, kAllowed, &asked);
    EXPECT_EQ(asked, row.asked) << row.fields;
  }
}

TEST(UpgradeTest, AnOldClientCanNotAsk) {
  net::RequestHead head;
  ASSERT_TRUE(net::ParseRequestHead(
                  "GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", &head)
                  .ok());
  std::string asked;
  ReadUpgrade(head, kAllowed, &asked);
  EXPECT_EQ(asked, "");
}

TEST(UpgradeTest, A101ChangesToWhatWasAskedFor) {
  const struct {
    std::string fields;
    std::string_view asked;
    bool as_asked;
  } rows[] = {
      {"Connection: upgrade\r\nUpgrade: WebSocket\r\n", "ssh/2.0, websocket", true},
      {"Connection: upgrade\r\nUpgrade: websocket\r\n", "websocket/13", true},
      {"Connection: upgrade\r\nUpgrade: h2c\r\n", "websocket", false},
      {"Connection: upgrade\r\nUpgrade: websocket, h2c\r\n", "websocket", false},
      {"Connection: upgrade\r\n", "websocket", false},
      {"Upgrade: websocket\r\n", "websocket", false},
      {"Connection: upgrade\r\nUpgrade: websocket\r\n", "", false},
  };
  for (const auto& row : rows) {
    const std::string bytes = "HTTP/1.1 101 Switching Protocols\r\n" + row.fields + "\r\n";
    net::ResponseHead head;
    ASSERT_TRUE(net::ParseResponseHead(bytes, /*to_head=*/false, &head).ok());
    EXPECT_EQ(ChangesAsAsked(head, row.asked), row.as_asked) << row.fields;
  }
}

}  // namespace
}  // namespace sluice::gateway
