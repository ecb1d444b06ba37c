#include "sluice/config/redis_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/ascii.h"
#include "sluice/config/endpoint_reader.h"
#include "sluice/config/secret_file.h"
#include "sluice/config/tls_reader.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxPrefix = 64;
constexpr std::uint16_t kServerPort = 6379;
constexpr std::uint16_t kSentinelPort = 26379;
constexpr std::size_t kMaxNodes = 32;
constexpr std::size_t kMaxMasterName = 128;
constexpr std::string_view kOneOfTwo = "leave one of the two out";

void ReadUrl(Fields& fields, RedisUrl& url) {
  // Where one of these is written a URL is not what is missing.
  const Node& node = fields.node();
  const bool elsewhere = node.Find("sentinel") != nullptr || node.Find("cluster") != nullptr;
  const auto value = elsewhere
                         ? fields.Take("url")
                         : fields.Require("url", "write for example `url: redis://127.0.0.1:6379`");
  if (value && node.Find("sentinel") != nullptr) {
    return value->Complain("names a server, and `sentinel` finds one", kOneOfTwo);
  }
  if (value && node.Find("cluster") != nullptr) {
    return value->Complain("names a server, and `cluster` is of several", kOneOfTwo);
  }
  const auto text = value ? value->Text() : std::nullopt;
  if (!text) return;
  auto parsed = ParseRedisUrl(*text);
  if (parsed.ok()) {
    url = *std::move(parsed);
  } else {
    // Without what was written: a password may stand anywhere in it.
    value->Complain(
        fmt::format(
            "is not the URL of a Redis server: {}",
            std::string_view(parsed.status().message().data(), parsed.status().message().size())),
        "write redis://HOST:PORT, rediss://HOST:PORT for TLS, or unix:///PATH/OF/THE/SOCKET");
  }
}

void RefusePassword(Fields& fields) {
  // Only where it is written, so that it is not told as one of the fields that there are.
  if (fields.node().Find("password") == nullptr) return;
  fields.Refuse("password", "is not written into this file",
                "write it into one of its own, and name that: `password_file: redis.password`");
}

// What can stand in the URL, too, but in one of the two places alone.
void ReadLogin(Fields& fields, const std::string& base_dir, RedisUrl& url) {
  constexpr std::string_view kTwice = "stands in `url`, too";
  if (const auto value = fields.Take("username")) {
    if (!url.user.empty()) value->Complain(kTwice, kOneOfTwo);
    url.user = value->Text().value_or("");
  }
  if (const auto value = fields.Take("password_file")) {
    if (!url.password.empty())
      value->Complain("gives a password, and `url` has one, too", kOneOfTwo);
    url.password = ReadSecretFile(*value, base_dir).value_or("");
  }
  RefusePassword(fields);
  if (const auto value = fields.Take("database")) {
    if (url.database != 0) value->Complain(kTwice, kOneOfTwo);
    url.database = static_cast<std::uint16_t>(value->Integer(0, 65535).value_or(0));
    if (url.database != 0 && fields.node().Find("cluster") != nullptr) {
      value->Complain("must be 0: a cluster has no other", "leave it out");
    }
  }
}

void ReadMaster(const Value& value, std::string& master) {
  const auto text = value.Text();
  if (!text) return;
  const auto fits = [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '.' || c == '-' || c == '_';
  };
  if (text->size() <= kMaxMasterName && std::all_of(text->begin(), text->end(), fits)) {
    master = *text;
  } else {
    value.Complain(fmt::format("must be of letters, digits and .-_ alone, got {}", Quoted(*text)),
                   "the name behind `sentinel monitor` in their configuration");
  }
}

void ReadNodes(const Value& value, std::uint16_t port, std::string_view example,
               std::string_view why_once, std::vector<Endpoint>& nodes) {
  for (const Value& item : value.Items()) {
    const auto text = item.Text();
    if (!text) continue;
    const auto node = ParseEndpoint(*text, port);
    if (!node || node->port == 0) {
      item.Complain(fmt::format("must be HOST or HOST:PORT, got {}", Quoted(*text)),
                    fmt::format("write for example {}", example));
    } else if (std::find(nodes.begin(), nodes.end(), *node) != nodes.end()) {
      item.Complain(fmt::format("names {} twice", Quoted(*text)), why_once);
    } else if (nodes.size() == kMaxNodes) {
      return value.Complain(fmt::format("must name at most {} of them", kMaxNodes));
    } else {
      nodes.push_back(*node);
    }
  }
}

SentinelSettings ReadSentinel(const Value& value, const std::string& base_dir) {
  SentinelSettings sentinel;
  Fields fields(value.node(), "`sentinel`", value.diagnostics());
  if (const auto master = fields.Require("master", "write for example `master: mymaster`")) {
    ReadMaster(*master, sentinel.master);
  }
  if (const auto nodes = fields.Require("nodes", "write for example `nodes: [10.0.0.1:26379]`")) {
    ReadNodes(*nodes, kSentinelPort, "`[10.0.0.1:26379, 10.0.0.2:26379, 10.0.0.3:26379]`",
              "each of them has one voice in where the primary is", sentinel.nodes);
  }
  if (const auto user = fields.Take("username")) sentinel.user = user->Text().value_or("");
  if (const auto file = fields.Take("password_file")) {
    sentinel.password = ReadSecretFile(*file, base_dir).value_or("");
  }
  RefusePassword(fields);
  fields.Finish();
  return sentinel;
}

// Those that stand in a key's name as they are (store/redis/key_name.h).
bool StaysInAKey(char c) {
  return IsLetter(c) || IsDigit(c) || std::string_view("-._~@/,=+:").find(c) != std::string::npos;
}

void ReadPrefix(const Value& value, std::string& prefix) {
  const auto text = value.Text();
  if (!text) return;
  if (text->size() > kMaxPrefix) {
    value.Complain(
        fmt::format("must have at most {} characters, got {}", kMaxPrefix, text->size()));
  } else if (!std::all_of(text->begin(), text->end(), StaysInAKey)) {
    value.Complain(
        fmt::format("must be of letters, digits and -._~@/,=+: alone, got {}", Quoted(*text)),
        "keys in Redis begin with it");
  } else {
    prefix = *text;
  }
}

void ReadHashKey(const Value& value, const std::string& base_dir, RedisSettings& redis) {
  const auto digits = ReadSecretFile(value, base_dir);
  if (!digits) return;
  std::array<std::uint8_t, 16> key{};
  bool hex = digits->size() == 2 * key.size();
  for (std::size_t i = 0; hex && i < key.size(); ++i) {
    const int high = HexValue((*digits)[2 * i]);
    const int low = HexValue((*digits)[2 * i + 1]);
    hex = high >= 0 && low >= 0;
    key[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  if (hex) {
    redis.hash_key = key;
  } else {
    value.Complain("must name a file that holds 32 hex digits and nothing else",
                   "`openssl rand -hex 16 > FILE` makes one; all nodes share it");
  }
}

void ReadTlsOfRedis(Fields& fields, const std::string& base_dir, RedisSettings& redis) {
  if (redis.url.tls) redis.tls.emplace();
  const auto value = fields.Take("tls");
  if (!value) return;
  redis.tls = ReadClientTls(*value, base_dir);
  redis.url.tls = true;
  if (!redis.url.unix_socket.empty()) {
    value->Complain("means nothing to a Unix socket", "leave it out");
  }
}

}  // namespace

RedisSettings ReadRedis(const Value& value, const std::string& base_dir) {
  RedisSettings redis;
  Fields fields(value.node(), "`redis`", value.diagnostics());
  ReadUrl(fields, redis.url);
  if (const auto sentinel = fields.Take("sentinel")) {
    redis.sentinel = ReadSentinel(*sentinel, base_dir);
    if (fields.node().Find("cluster") != nullptr) {
      sentinel->Complain("finds one server, and `cluster` is of several", kOneOfTwo);
    }
  }
  if (const auto cluster = fields.Take("cluster")) {
    ReadNodes(*cluster, kServerPort, "`[10.0.0.1:6379, 10.0.0.2:6379, 10.0.0.3:6379]`",
              "each of them is asked for all others", redis.cluster);
  }
  ReadLogin(fields, base_dir, redis.url);
  ReadTlsOfRedis(fields, base_dir, redis);
  if (const auto prefix = fields.Take("prefix")) ReadPrefix(*prefix, redis.prefix);
  if (const auto hash = fields.Take("hash_identities")) {
    redis.hash_identities = hash->Bool().value_or(false);
  }
  if (const auto key = fields.Take("hash_key_file")) ReadHashKey(*key, base_dir, redis);
  if (const auto deadline = fields.Take("deadline")) {
    redis.deadline = deadline->Length(1ms, 1s).value_or(redis.deadline);
  }
  if (const auto wait = fields.Take("connect_wait")) {
    redis.connect_wait = wait->Length(Duration{0}, 60s).value_or(redis.connect_wait);
  }
  fields.Finish();
  return redis;
}

}  // namespace sluice::config
