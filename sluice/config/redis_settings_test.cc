// `store.redis`: what is read, and that no password is ever told.
#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT: mkdtemp

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "sluice/config/testing/load_text.h"

namespace sluice::config {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class RedisSettingsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "sluice_redis_settings_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const std::string& name, std::string_view text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
    fs::permissions(Path(name), fs::perms::owner_read | fs::perms::owner_write);
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  static std::string File(const std::string& fields) {
    return "store: { redis: { " + fields + " } }";
  }
  RedisSettings Good(const std::string& fields) const {
    return config::Good(File(fields), folder_).redis.value_or(RedisSettings{});
  }
  // As "column message = hint" lines, files named without their folder.
  std::string Complaints(const std::string& fields) const {
    std::string all = config::Complaints(File(fields), folder_);
    for (std::size_t at = 0; (at = all.find(folder_ + "/")) != all.npos;) {
      all.erase(at, folder_.size() + 1);
    }
    return all;
  }

  std::string folder_;
};

TEST_F(RedisSettingsTest, WithoutItThereIsNone) {
  EXPECT_EQ(config::Good("store: { memory: { max_keys: 5 } }").redis, std::nullopt);
}

TEST_F(RedisSettingsTest, AUrlIsEnough) {
  EXPECT_EQ(Good("url: redis://10.0.0.7"), (RedisSettings{.url = {.host = "10.0.0.7", .port = 6379},
                                                          .sentinel = std::nullopt,
                                                          .cluster = {},
                                                          .tls = std::nullopt,
                                                          .prefix = "sluice",
                                                          .hash_identities = false,
                                                          .hash_key = std::nullopt,
                                                          .deadline = 5ms,
                                                          .connect_wait = 2s}));
}

TEST_F(RedisSettingsTest, ReadsEveryField) {
  Write("secret", "s3cret word\n");
  Write("hash.key", "000102030405060708090a0b0c0d0eFF\n");
  Write("ca.pem", "-----BEGIN CERTIFICATE-----\n");
  RedisSettings expected{
      .url = {.tls = true,
              .user = "ann",
              .password = "s3cret word",
              .host = "h",
              .port = 6380,
              .database = 3},
      .sentinel = std::nullopt,
      .cluster = {},
      .tls = UpstreamTlsSettings{.ca = Path("ca.pem"), .server_name = "redis.internal"},
      .prefix = "eu:api",
      .hash_identities = true,
      .hash_key = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255}},
      .deadline = 20ms,
      .connect_wait = 0s};
  EXPECT_EQ(Good("url: redis://h:6380, username: ann, password_file: secret, database: 3, "
                 "tls: { ca: ca.pem, server_name: redis.internal }, prefix: \"eu:api\", "
                 "hash_identities: true, hash_key_file: hash.key, deadline: 20ms, connect_wait: 0"),
            expected);
  const Config both =
      config::Good("store: { memory: { max_keys: 5 }, redis: { url: \"unix:///run/r?db=2\" } }");
  EXPECT_EQ(both.memory.max_keys, 5u);
  EXPECT_EQ(both.redis->url, (RedisUrl{.unix_socket = "/run/r", .database = 2}));
}

TEST_F(RedisSettingsTest, TheSchemeAloneTurnsTlsOn) {
  EXPECT_EQ(Good("url: rediss://h").tls, UpstreamTlsSettings{});
  EXPECT_EQ(Good("url: redis://h").tls, std::nullopt);
  EXPECT_EQ(Good("url: redis://h, tls: {}").tls, UpstreamTlsSettings{});
  EXPECT_TRUE(Good("url: redis://h, tls: {}").url.tls);
  EXPECT_EQ(Complaints("url: unix:///run/r, tls: {}"),
            "1:44 `tls` means nothing to a Unix socket = leave it out\n");
  EXPECT_EQ(Complaints("url: redis://h, tls: { zz: 1 }"),
            "1:42 unknown field `zz` = `tls` has verify, ca, server_name, certificate, key\n");
}

TEST_F(RedisSettingsTest, NeedsAUrl) {
  EXPECT_EQ(Complaints("deadline: 5ms"),
            "1:17 `redis` needs `url` = write for example `url: redis://127.0.0.1:6379`\n");
}

TEST_F(RedisSettingsTest, ServersOfAClusterStandInPlaceOfAUrl) {
  Write("secret", "s3cret\n");
  const RedisSettings settings = Good(
      "cluster: [10.0.0.1, \"[::1]:7000\", r3.internal:7001], username: ann, "
      "password_file: secret, database: 0, tls: {}");
  EXPECT_EQ(settings.cluster,
            (std::vector<Endpoint>{{"10.0.0.1", 6379}, {"::1", 7000}, {"r3.internal", 7001}}));
  EXPECT_EQ(settings.url, (RedisUrl{.tls = true, .user = "ann", .password = "s3cret"}));
  EXPECT_EQ(Good("cluster: r1").cluster, (std::vector<Endpoint>{{"r1", 6379}}));
  EXPECT_EQ(Good("url: redis://h").cluster, std::vector<Endpoint>{});
}

TEST_F(RedisSettingsTest, TellsWhatIsWrongWithACluster) {
  EXPECT_EQ(Complaints("url: redis://h, cluster: [a]"),
            "1:24 `url` names a server, and `cluster` is of several = leave one of the two out\n");
  EXPECT_EQ(Complaints("sentinel: { master: a, nodes: [b] }, cluster: [a]"),
            "1:29 `sentinel` finds one server, and `cluster` is of several = leave one of the two "
            "out\n");
  EXPECT_EQ(Complaints("cluster: [a], database: 3"),
            "1:43 `database` must be 0: a cluster has no other = leave it out\n");
  EXPECT_EQ(Complaints("cluster: [h:0, \"redis://h\", a, a:6379]"),
            "1:29 `cluster` must be HOST or HOST:PORT, got `h:0` = write for example "
            "`[10.0.0.1:6379, 10.0.0.2:6379, 10.0.0.3:6379]`\n"
            "1:34 `cluster` must be HOST or HOST:PORT, got `redis://h` = write for example "
            "`[10.0.0.1:6379, 10.0.0.2:6379, 10.0.0.3:6379]`\n"
            "1:50 `cluster` names `a:6379` twice = each of them is asked for all others\n");
  EXPECT_NE(Complaints("cluster: []"), "");
}

TEST_F(RedisSettingsTest, SentinelsStandInPlaceOfAUrl) {
  Write("secret", "s3cret\n");
  Write("theirs", "0ther\n");
  const RedisSettings settings = Good(
      "sentinel: { master: my.master-1, nodes: [10.0.0.1, \"[::1]:26380\", s3.internal:5], "
      "username: sue, password_file: theirs }, username: ann, password_file: secret, "
      "database: 2, tls: {}");
  EXPECT_EQ(settings.sentinel,
            (SentinelSettings{.master = "my.master-1",
                              .nodes = {{"10.0.0.1", 26379}, {"::1", 26380}, {"s3.internal", 5}},
                              .user = "sue",
                              .password = "0ther"}));
  EXPECT_EQ(settings.url,
            (RedisUrl{.tls = true, .user = "ann", .password = "s3cret", .database = 2}));
  EXPECT_EQ(Good("sentinel: { master: a, nodes: b }").sentinel,
            (SentinelSettings{.master = "a", .nodes = {{"b", 26379}}, .user = "", .password = ""}));
}

TEST_F(RedisSettingsTest, TellsWhatIsWrongWithSentinels) {
  EXPECT_EQ(Complaints("url: redis://h, sentinel: { master: a, nodes: [b] }"),
            "1:24 `url` names a server, and `sentinel` finds one = leave one of the two out\n");
  EXPECT_EQ(Complaints("sentinel: {}"),
            "1:29 `sentinel` needs `master` = write for example `master: mymaster`\n"
            "1:29 `sentinel` needs `nodes` = write for example `nodes: [10.0.0.1:26379]`\n");
  EXPECT_EQ(Complaints("sentinel: { master: \"a b\", nodes: [h:0, h:x, c, c:26379] }"),
            "1:39 `master` must be of letters, digits and .-_ alone, got `a b` = the name behind "
            "`sentinel monitor` in their configuration\n"
            "1:54 `nodes` must be HOST or HOST:PORT, got `h:0` = write for example "
            "`[10.0.0.1:26379, 10.0.0.2:26379, 10.0.0.3:26379]`\n"
            "1:59 `nodes` must be HOST or HOST:PORT, got `h:x` = write for example "
            "`[10.0.0.1:26379, 10.0.0.2:26379, 10.0.0.3:26379]`\n"
            "1:67 `nodes` names `c:26379` twice = each of them has one voice in where the primary "
            "is\n");
  EXPECT_EQ(Complaints("sentinel: { master: a, nodes: [b], password: s3cret }"),
            "1:54 `password` is not written into this file = write it into one of its own, and "
            "name that: `password_file: redis.password`\n");
  EXPECT_EQ(Complaints("sentinel: { master: a, nodes: [b], zz: 1 }"),
            "1:54 unknown field `zz` = `sentinel` has master, nodes, username, password_file\n");
  std::string many = "s0";
  for (int i = 1; i < 33; ++i) many += ", s" + std::to_string(i);
  EXPECT_EQ(Complaints("sentinel: { master: a, nodes: [" + many + "] }"),
            "1:49 `nodes` must name at most 32 of them\n");
}

TEST_F(RedisSettingsTest, WhatStandsInTheUrlStandsNowhereElse) {
  Write("secret", "s3cret");
  EXPECT_EQ(
      Complaints("url: redis://ann:pw@h/2, username: bob, password_file: secret, database: 4"),
      "1:54 `username` stands in `url`, too = leave one of the two out\n"
      "1:74 `password_file` gives a password, and `url` has one, too = leave one of the two "
      "out\n"
      "1:92 `database` stands in `url`, too = leave one of the two out\n");
}

TEST_F(RedisSettingsTest, TellsWhatIsWrongWithAFileOfASecret) {
  Write("empty", "\n");
  Write("lines", "s3cret\nother\n");
  Write("open", "s3cret");
  fs::permissions(Path("open"), fs::perms::others_read, fs::perm_options::add);
  Write("short", "0011");
  Write("letters", "zz0102030405060708090a0b0c0d0e0f");
  const auto password = [this](const std::string& name) {
    return Complaints("url: redis://h, password_file: " + name);
  };
  EXPECT_EQ(password("missing"), "1:50 `missing` cannot be read: No such file or directory\n");
  EXPECT_EQ(password("empty"), "1:50 `password_file` names `empty`, which is empty\n");
  EXPECT_EQ(password("lines"),
            "1:50 `password_file` names `lines`, which holds more than one line = it must hold the "
            "secret and nothing else\n");
  EXPECT_EQ(password("open"),
            "warning 1:50 `password_file` names `open`, which every user of this machine can read "
            "= `chmod o= FILE`, or `defaultMode: 0440` of a Kubernetes Secret's volume\n");
  for (const std::string name : {"short", "letters"}) {
    EXPECT_EQ(Complaints("url: redis://h, hash_key_file: " + name),
              "1:50 `hash_key_file` must name a file that holds 32 hex digits and nothing else = "
              "`openssl rand -hex 16 > FILE` makes one; all nodes share it\n");
  }
}

TEST_F(RedisSettingsTest, TellsNoPassword) {
  Write("lines", "s3cret\ns3cret\n");
  for (const std::string fields :
       {"url: redis://:s3cret@h/x", "url: redi://ann:s3cret@h", "url: \":s3cret@h\"",
        "url: redis://:s3cret@h, deadlin: 5ms", "deadlin: 5ms, url: redis://:s3cr et@h",
        "url: redis://h, password: s3cret", "url: redis://h, password_file: lines",
        "url: redis://:s3cret@h, tls: [", "url: [redis://:s3cret@h]"}) {
    SCOPED_TRACE(fields);
    const std::string told = LoadText("f", File(fields), folder_, 1).diagnostics.Text();
    EXPECT_NE(told, "");
    EXPECT_EQ(told.find("s3cr"), told.npos) << told;
  }
  EXPECT_EQ(Complaints("url: redis://h, password: s3cret"),
            "1:35 `password` is not written into this file = write it into one of its own, and "
            "name that: `password_file: redis.password`\n");
}

TEST_F(RedisSettingsTest, HoldsItsNumbersWithinTheirRanges) {
  EXPECT_EQ(Complaints("url: redis://h:0, database: 70000, deadline: 500us, connect_wait: 61s"),
            "1:24 `url` is not the URL of a Redis server: the port is a number from 1 to 65535 = "
            "write redis://HOST:PORT, rediss://HOST:PORT for TLS, or "
            "unix:///PATH/OF/THE/SOCKET\n"
            "1:47 `database` must be at most 65535, got 70000\n"
            "1:64 `deadline` must be at least 1ms, got 500us\n"
            "1:85 `connect_wait` must be at most 1m, got 61s\n");
  EXPECT_EQ(Complaints("url: redis://h, deadline: 2s, prefix: \"a b\""),
            "1:45 `deadline` must be at most 1s, got 2s\n"
            "1:57 `prefix` must be of letters, digits and -._~@/,=+: alone, got `a b` = keys in "
            "Redis begin with it\n");
  EXPECT_EQ(Complaints("url: redis://h, prefix: " + std::string(65, 'a')),
            "1:43 `prefix` must have at most 64 characters, got 65\n");
}

}  // namespace
}  // namespace sluice::config
