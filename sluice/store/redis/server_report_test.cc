#include "sluice/store/redis/server_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sluice/net/testing/redis_on_loop.h"
#include "sluice/net/testing/redis_server.h"
#include "sluice/store/redis/testing/store_on_loop.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;
using net::testing::LineLog;
using net::testing::RedisServer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// As a server of version 7 answers, in part.
constexpr std::string_view kInfo =
    "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n\r\n"
    "# Memory\r\nused_memory:1\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\r\n"
    "# Persistence\r\nloading:0\r\nrdb_last_bgsave_status:ok\r\naof_enabled:1\r\n"
    "aof_last_write_status:ok\r\n\r\n"
    "# Replication\r\nrole:master\r\nconnected_slaves:1\r\n"
    "slave0:ip=10.0.0.8,port=6379,state=online\r\n";

ServerFacts Good() {
  ServerFacts facts;
  ReadInfo(kInfo, &facts);
  ReadConfig("save", "3600 1 300 100", &facts);
  ReadConfig("min-replicas-to-write", "1", &facts);
  facts.clock_ahead = 12ms;
  return facts;
}

TEST(ServerReportTest, TellsWhatTheServerIsInOneLine) {
  const ServerReport report = ReportOf(Good());
  EXPECT_EQ(report.facts,
            "redis 7.0.15, standalone, primary with 1 replicas, maxmemory 0 (noeviction), appends "
            "on, snapshots on, min-replicas-to-write 1, clock 10 ms ahead of ours");
  EXPECT_THAT(report.warnings, IsEmpty());
}

TEST(ServerReportTest, TellsTheSameOfClocksThatDifferByAJitter) {
  ServerFacts facts = Good();
  for (const Duration ahead : {-9ms, 0ms, 9ms}) {
    facts.clock_ahead = ahead;
    EXPECT_THAT(ReportOf(facts).facts, ::testing::EndsWith(", clock as ours"));
  }
  facts.clock_ahead = -19ms;
  EXPECT_THAT(ReportOf(facts).facts, ::testing::EndsWith(", clock 10 ms behind ours"));
}

TEST(ServerReportTest, WarnsOfWhatMakesCountersForget) {
  using Change = void (*)(ServerFacts&);
  const std::pair<std::string_view, Change> rows[] = {
      {"version 3.2.12 is older", [](ServerFacts& f) { ReadInfo("redis_version:3.2.12", &f); }},
      {"this is a replica", [](ServerFacts& f) { ReadInfo("role:slave\n", &f); }},
      {"one server of a cluster, and only its own keys can be reached: write `cluster: ",
       [](ServerFacts& f) { ReadInfo("redis_mode:cluster\r\n", &f); }},
      {"this is a sentinel", [](ServerFacts& f) { ReadInfo("redis_mode:sentinel\r\n", &f); }},
      {"maxmemory-policy allkeys-lru may",
       [](ServerFacts& f) { ReadInfo("maxmemory:9\nmaxmemory_policy:allkeys-lru", &f); }},
      {"maxmemory-policy volatile-ttl may evict counters, those first that end soonest",
       [](ServerFacts& f) { ReadInfo("maxmemory:9\nmaxmemory_policy:volatile-ttl", &f); }},
      {"could not save", [](ServerFacts& f) { ReadInfo("rdb_last_bgsave_status:err\r\n", &f); }},
      {"no persistence",
       [](ServerFacts& f) {
         ReadInfo("aof_enabled:0\r\n", &f);
         ReadConfig("save", "", &f);
       }},
      {"min-replicas-to-write is 0",
       [](ServerFacts& f) { ReadConfig("min-replicas-to-write", "0", &f); }},
      {"1500 ms ahead of ours", [](ServerFacts& f) { f.clock_ahead = 1500ms; }},
      {"1500 ms behind ours", [](ServerFacts& f) { f.clock_ahead = -1500ms; }},
      {"CONFIG: NOPERM x", [](ServerFacts& f) { f.refused = {"CONFIG: NOPERM x"}; }},
  };
  for (const auto& [warning, change] : rows) {
    ServerFacts facts = Good();
    change(facts);
    EXPECT_THAT(ReportOf(facts).warnings, ElementsAre(HasSubstr(std::string(warning))));
  }
}

TEST(ServerReportTest, DoesNotWarnOfWhatDoesNoHarm) {
  using Change = void (*)(ServerFacts&);
  const Change rows[] = {
      // What evicts does nothing without a bound.
      [](ServerFacts& f) { ReadInfo("maxmemory:0\nmaxmemory_policy:allkeys-lru", &f); },
      [](ServerFacts& f) { ReadInfo("maxmemory:9\nmaxmemory_policy:noeviction", &f); },
      // One of the two is enough.
      [](ServerFacts& f) { ReadInfo("aof_enabled:0\r\n", &f); },
      [](ServerFacts& f) { ReadConfig("save", "", &f); },
      // Without replicas a demand for some would stop all writes.
      [](ServerFacts& f) {
        ReadInfo("connected_slaves:0", &f);
        ReadConfig("min-replicas-to-write", "0", &f);
      },
      [](ServerFacts& f) { f.clock_ahead = -999ms; },
      [](ServerFacts& f) {
        ReadInfo("redis_mode:cluster", &f);
        f.as_one_of_several = true;
      },
      // Its own version, beside the one of Redis that it is compatible with.
      [](ServerFacts& f) { ReadInfo("redis_version:7.2.4\r\nvalkey_version:8.0.1\r\n", &f); },
  };
  for (const Change change : rows) {
    ServerFacts facts = Good();
    change(facts);
    EXPECT_THAT(ReportOf(facts).warnings, IsEmpty());
  }
}

TEST(ServerReportTest, NamesValkeyByItsOwnVersion) {
  for (const std::string_view info :
       {"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n",
        "valkey_version:8.0.1\r\nredis_version:7.2.4\r\n"}) {
    ServerFacts facts;
    ReadInfo(info, &facts);
    EXPECT_THAT(ReportOf(facts).facts, StartsWith("valkey 8.0.1, "));
  }
}

TEST(ServerReportTest, WhatIsNotToldOrNoValueIsUnknown) {
  const std::string expected =
      "redis unknown, unknown, role unknown, maxmemory unknown (unknown), appends unknown, "
      "snapshots unknown, min-replicas-to-write unknown";
  EXPECT_EQ(ReportOf({}).facts, expected);
  ServerFacts facts;
  ReadInfo(
      "redis_version:\x1b[2J\r\nredis_mode:a b\r\nrole:king\r\nmaxmemory:-1\r\n"
      "connected_slaves:1x\nmaxmemory_policy:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n:\n",
      &facts);
  ReadConfig("min-replicas-to-write", "99999999999999999999", &facts);
  EXPECT_EQ(ReportOf(facts).facts, expected);
}

// A store whose report can be awaited.
class ServerReportLiveTest : public ::testing::Test {
 protected:
  RedisStoreOptions Options() {
    RedisStoreOptions options = testing::ToSocket(server_);
    options.on_report = [this](const ServerReport& report) {
      told_.Add(report.facts);
      for (const std::string& warning : report.warnings) told_.Add(warning);
      told_.Add(".");
    };
    return options;
  }

  RedisServer server_;
  LineLog told_;
};

TEST_F(ServerReportLiveTest, IsMadeForEachConnection) {
  server_.Ask({"CONFIG", "SET", "maxmemory", "100mb"});
  server_.Ask({"CONFIG", "SET", "maxmemory-policy", "allkeys-lfu"});
  server_.Ask({"CONFIG", "SET", "save", ""});
  testing::StoreOnLoop store(Options());
  for (int connection = 0; connection < 2; ++connection) {
    EXPECT_THAT(told_.Take(4),
                ElementsAre(::testing::AllOf(HasSubstr("primary with 0 replicas, maxmemory "
                                                       "104857600 (allkeys-lfu), appends off, "
                                                       "snapshots off, min-replicas-to-write 0"),
                                             HasSubstr("clock ")),
                            HasSubstr("allkeys-lfu may evict"), HasSubstr("no persistence"), "."));
    server_.Ask({"CLIENT", "KILL", "TYPE", "normal"});
  }
}

TEST_F(ServerReportLiveTest, SaysWhatItWasNotAllowedToAsk) {
  server_.Ask({"ACL", "SETUSER", "ann", "on", ">pw", "~*", "+@all", "-config", "-info"});
  RedisStoreOptions options = Options();
  options.connection.user = "ann";
  options.connection.password = "pw";
  testing::StoreOnLoop store(options);
  EXPECT_THAT(told_.Take(4), ElementsAre(HasSubstr("redis unknown"), HasSubstr("INFO: NOPERM"),
                                         HasSubstr("CONFIG: NOPERM"), "."));
}

}  // namespace
}  // namespace sluice::redis
