// api/config.schema.json, the parser, the reference page and the examples say the same.

#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT: mkdtemp

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "sluice/config/load.h"
#include "sluice/config/testing/schema_validator.h"

namespace sluice::config {
namespace {

namespace json = boost::json;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

const json::value& SchemaValue() {
  static const json::value schema =
      json::parse(ReadAll(SLUICE_SOURCE_DIR "/api/config.schema.json"));
  return schema;
}
const json::object& Schema() { return SchemaValue().as_object(); }

// Every object in the schema that names properties, by its place in it.
void FindObjects(const json::value& value, const std::string& place,
                 std::map<std::string, const json::object*>& found) {
  if (value.is_array()) {
    const json::array& items = value.as_array();
    for (std::size_t i = 0; i < items.size(); ++i) {
      FindObjects(items[i], place + "/" + std::to_string(i), found);
    }
  }
  if (!value.is_object()) return;
  const json::object& object = value.as_object();
  if (const auto* properties = object.if_contains("properties"); properties != nullptr) {
    found[place] = &properties->as_object();
  }
  for (const auto& [name, inner] : object) {
    FindObjects(inner, place + "/" + std::string(name), found);
  }
}

void FindEnums(const json::value& value, const std::string& place,
               std::map<std::string, const json::array*>& found) {
  if (value.is_array()) {
    const json::array& items = value.as_array();
    for (std::size_t i = 0; i < items.size(); ++i) {
      FindEnums(items[i], place + "/" + std::to_string(i), found);
    }
  }
  if (!value.is_object()) return;
  for (const auto& [name, inner] : value.as_object()) {
    if (name == "enum") found[place] = &inner.as_array();
    FindEnums(inner, place + "/" + std::string(name), found);
  }
}

// "a, b and c" after `before` in what the parser says about `text`.
std::set<std::string> Listed(const std::string& text, const std::string& before) {
  const std::string told = LoadText("f", text, "", 1).diagnostics.Text();
  const std::size_t at = told.find(before);
  EXPECT_NE(at, std::string::npos) << told;
  std::set<std::string> names;
  if (at == std::string::npos) return names;
  std::size_t begin = at + before.size();
  const std::size_t end = told.find_first_of(";\n", begin);
  while (begin < end) {
    const std::size_t comma = std::min(told.find(", ", begin), end);
    names.insert(told.substr(begin, comma - begin));
    begin = comma + 2;
  }
  return names;
}

// For each object of the schema: a file with an unknown field there, and how the parser begins the
// list of the fields that it knows there.
struct Place {
  const char* text;
  const char* before;
};
const std::map<std::string, Place>& Places() {
  static const std::map<std::string, Place> places = {
      {"", {"zzzzzz: 1\n", "the file has "}},
      {"/properties/node", {"node: { zzzzzz: 1 }\n", "`node` has "}},
      {"/properties/identity/properties/ip", {"identity: { ip: { zzzzzz: 1 } }\n", "`ip` has "}},
      {"/properties/plans", {"plans: { zzzzzz: 1 }\n", "`plans` has "}},
      {"/properties/gateway", {"gateway: { zzzzzz: 1 }\n", "`gateway` has "}},
      {"/properties/gateway/properties/cors",
       {"gateway: { cors: { zzzzzz: 1 } }\n", "`cors` has "}},
      {"/properties/gateway/properties/tls", {"gateway: { tls: { zzzzzz: 1 } }\n", "`tls` has "}},
      {"/$defs/client_tls", {"gateway: { upstream_tls: { zzzzzz: 1 } }\n", "`upstream_tls` has "}},
      {"/$defs/certificate",
       {"gateway: { tls: { certificates: [{ zzzzzz: 1 }] } }\n", "one of `certificates` has "}},
      {"/properties/gateway/properties/upstream_health",
       {"gateway: { upstream_health: { zzzzzz: 1 } }\n", "`upstream_health` has "}},
      {"/properties/gateway/properties/health_check",
       {"gateway: { health_check: { zzzzzz: 1 } }\n", "`health_check` has "}},
      {"/$defs/upstream/oneOf/1", {"gateway: { upstream: { zzzzzz: 1 } }\n", "`upstream` has "}},
      {"/properties/gateway/properties/access_log",
       {"gateway: { access_log: { zzzzzz: 1 } }\n", "`access_log` has "}},
      {"/properties/admin", {"admin: { zzzzzz: 1 }\n", "`admin` has "}},
      {"/properties/store", {"store: { zzzzzz: 1 }\n", "`store` has "}},
      {"/properties/store/properties/memory",
       {"store: { memory: { zzzzzz: 1 } }\n", "`memory` has "}},
      {"/properties/store/properties/redis", {"store: { redis: { zzzzzz: 1 } }\n", "`redis` has "}},
      {"/properties/store/properties/redis/properties/sentinel",
       {"store: { redis: { sentinel: { zzzzzz: 1 } } }\n", "`sentinel` has "}},
      {"/properties/limits", {"limits: { zzzzzz: 1 }\n", "`limits` has "}},
      {"/properties/log", {"log: { zzzzzz: 1 }\n", "`log` has "}},
      {"/$defs/identity", {"identity: { who: { zzzzzz: 1 } }\n", "`who` has "}},
      {"/$defs/match", {"rules: [{ match: { zzzzzz: 1 } }]\n", "`match` has "}},
      {"/$defs/queue",
       {"rules: [{ algorithm: leaky-bucket, queue: { zzzzzz: 1 } }]\n", "`queue` has "}},
      {"/$defs/numbers", {"rules: [{ plans: { pro: { zzzzzz: 1 } } }]\n", "plan `pro` has "}},
      {"/$defs/rule", {"rules: [{ zzzzzz: 1 }]\n", "a rule has "}},
      {"/$defs/rule/properties/on_store_failure/oneOf/1",
       {"store: { redis: { url: redis://h } }\nrules: [{ on_store_failure: { zzzzzz: 1 } }]\n",
        "`on_store_failure` has "}},
      {"/$defs/rule/properties/lease/oneOf/1",
       {"store: { redis: { url: redis://h } }\nrules: [{ lease: { zzzzzz: 1 } }]\n",
        "`lease` has "}},
      {"/$defs/rule/properties/cost/oneOf/1",
       {"rules: [{ cost: { zzzzzz: 1 } }]\n", "`cost` has "}},
  };
  return places;
}

TEST(SchemaTest, HasExactlyTheFieldsThatTheParserKnows) {
  std::map<std::string, const json::object*> objects;
  FindObjects(SchemaValue(), "", objects);
  for (const auto& [place, properties] : objects) {
    SCOPED_TRACE(place);
    // `identity` holds names of the user's own; `ip` among them is an object of its own.
    if (place == "/properties/identity") continue;
    ASSERT_TRUE(Places().contains(place)) << "no text for this object";
    std::set<std::string> names;
    for (const auto& [name, value] : *properties) names.emplace(name);
    EXPECT_EQ(names, Listed(Places().at(place).text, Places().at(place).before));
  }
  EXPECT_EQ(objects.size(), Places().size() + 1);
}

TEST(SchemaTest, ARuleHasTheSameFieldsWhateverItIs) {
  const auto fields = Listed("rules: [{ zzzzzz: 1 }]\n", "a rule has ");
  EXPECT_GT(fields.size(), 20u);
  for (const auto* kind : {"deny: true", "algorithm: concurrency", "algorithm: leaky-bucket"}) {
    EXPECT_EQ(Listed("rules: [{ zzzzzz: 1, " + std::string(kind) + " }]\n", "a rule has "), fields);
  }
}

TEST(SchemaTest, HasExactlyTheWordsThatTheParserTakes) {
  const std::map<std::string, const char*> texts = {
      {"/properties/identity/properties/ip/properties/header",
       "identity: { ip: { header: zzzzzz } }\n"},
      {"/properties/gateway/properties/access_log/properties/format",
       "gateway: { access_log: { format: zzzzzz } }\n"},
      {"/properties/gateway/properties/cors/properties/preflight",
       "gateway: { cors: { preflight: zzzzzz } }\n"},
      {"/properties/gateway/properties/tls/properties/min_version",
       "gateway: { tls: { min_version: zzzzzz } }\n"},
      {"/properties/log/properties/level", "log: { level: zzzzzz }\n"},
      {"/properties/log/properties/format", "log: { format: zzzzzz }\n"},
      {"/properties/headers/oneOf/0", "headers: zzzzzz\n"},
      {"/properties/headers/oneOf/1/items", "headers: [zzzzzz]\n"},
      {"/properties/body", "body: zzzzzz\n"},
      {"/$defs/rule/properties/mode", "rules: [{ mode: zzzzzz }]\n"},
      {"/$defs/rule/properties/scope", "rules: [{ scope: zzzzzz }]\n"},
      {"/$defs/rule/properties/on_store_failure/oneOf/0",
       "rules: [{ on_store_failure: zzzzzz }]\n"},
      {"/$defs/rule/properties/lease/oneOf/0", "rules: [{ lease: zzzzzz }]\n"},
      {"/$defs/rule/properties/algorithm", "rules: [{ algorithm: zzzzzz }]\n"},
      {"/$defs/rule/properties/align", "rules: [{ algorithm: fixed-window, align: zzzzzz }]\n"},
  };
  std::map<std::string, const json::array*> enums;
  FindEnums(SchemaValue(), "", enums);
  for (const auto& [place, words] : enums) {
    SCOPED_TRACE(place);
    ASSERT_TRUE(texts.contains(place)) << "no text for these words";
    std::set<std::string> names;
    for (const auto& word : *words) names.emplace(word.as_string());
    EXPECT_EQ(names, Listed(texts.at(place), "must be one of "));
  }
  EXPECT_EQ(enums.size(), texts.size());
}

// A folder of this process alone, until it ends.
struct OwnFolder {
  OwnFolder() { EXPECT_NE(mkdtemp(path.data()), nullptr); }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  ~OwnFolder() { std::filesystem::remove_all(path); }

  std::string path = ::testing::TempDir() + "sluice_schema_XXXXXX";
};

// A copy of docs/examples in which there also are the certificates and keys that `pages` name,
// tls/NAME.pem: they are not part of the repository, and the parser looks at no more than their
// kind.
std::string FolderOfExamples(const std::vector<std::string>& pages) {
  namespace fs = std::filesystem;
  static const OwnFolder own;
  const fs::path folder = fs::path(own.path) / "examples";
  fs::remove_all(folder);
  fs::copy(SLUICE_SOURCE_DIR "/docs/examples", folder);
  const std::regex name(R"(\btls/[\w./-]+\.pem\b)");
  for (const std::string& page : pages) {
    for (std::sregex_iterator it(page.begin(), page.end(), name), end; it != end; ++it) {
      const fs::path file = folder / it->str();
      fs::create_directories(file.parent_path());
      std::ofstream(file) << "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n";
      fs::permissions(file, fs::perms::owner_read);
    }
  }
  return folder.string();
}

// The examples in a folder as above.
std::vector<std::string> ExampleFiles() {
  std::vector<std::string> files;
  std::vector<std::string> texts;
  for (const auto& entry :
       std::filesystem::directory_iterator(SLUICE_SOURCE_DIR "/docs/examples")) {
    if (entry.path().extension() != ".yaml") continue;
    files.push_back(entry.path().filename().string());
    texts.push_back(ReadAll(entry.path().string()));
  }
  const std::string folder = FolderOfExamples(texts);
  for (std::string& file : files) file = folder + "/" + file;
  return files;
}

TEST(SchemaTest, ExamplesAreValidForBoth) {
  const std::vector<std::string> files = ExampleFiles();
  EXPECT_GE(files.size(), 5u);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    EXPECT_EQ(Load(file, 1).diagnostics.Text(), "");
    Diagnostics diagnostics;
    const auto root = ReadDocument(file, diagnostics);
    ASSERT_TRUE(root.has_value());
    EXPECT_EQ(testing::Validate(testing::ToJson(*root), Schema(), Schema()), "");
  }
}

struct Row {
  std::string text;
  bool valid;
};

void ExpectBothSay(const Row& row) {
  SCOPED_TRACE(row.text);
  Diagnostics diagnostics;
  const auto root = ParseDocument("f", row.text, diagnostics);
  ASSERT_TRUE(root.has_value());
  EXPECT_EQ(testing::Validate(testing::ToJson(*root), Schema(), Schema()).empty(), row.valid);
  EXPECT_EQ(LoadText("f", row.text, "", 1).config.has_value(), row.valid)
      << LoadText("f", row.text, "", 1).diagnostics.Text();
}

// The parser knows more than a schema can say; what the schema refuses the parser refuses, too.
TEST(SchemaTest, WhatTheSchemaRefusesTheParserRefuses) {
  const Row rows[] = {
      {"rules: []\n", true},
      {"rules: [{ name: a, key: ip, limit: 100/min }]\n", true},
      {"rules: [{ name: a, key: ip, limit: 10 / s, burst: 1_000k }]\n", true},
      {"rules: [{ name: a, key: ip, limit: 5, algorithm: concurrency, slot_ttl: 1h30m }]\n", true},
      {"rules: [{ name: a, key: ip, limit: 5/min, block_for: 15m }]\n", true},
      {"rules: [{ name: a, key: ip, limit: 5/min, block_for: 15 }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 100 per minute }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 1.5/s }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 5/m }]\n", false},
      {"rules: [{ name: a, key: [], limit: 5/s }]\n", false},
      {"rules: [{ name: a, key: jwt.sub, limit: 5/s }]\n", false},
      {"rules: [{ key: ip, limit: 5/s }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 5/s, colour: red }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 5/s, mode: soft }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 5/s, hide: yes }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 5/s, match: {} }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 5/s, match: { path: v1 } }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 5/s, match: { method: get } }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 5/s, cost: { header: X } }]\n", false},
      {"rules: {}\n", false},
      {"gateway: { listen: 8080, upstream: http://a }\n", false},
      {"gateway: { listen: a:1, upstream: https://a }\n", true},
      {"gateway: { listen: a:1, upstream: [https://a:8443, http://a] }\n", true},
      {"gateway: { listen: a:1, upstream: ftp://a }\n", false},
      {"gateway: { listen: a:1, upstream: http://a, tls: {} }\n", false},
      {"gateway: { listen: a:1, upstream: http://a, tls: { certificates: [] } }\n", false},
      {"gateway: { listen: a:1, upstream: http://a, tls: { certificate: a.pem } }\n", false},
      {"gateway: { listen: a:1, upstream: https://a, upstream_tls: {} }\n", true},
      {"gateway: { listen: a:1, upstream: https://a, upstream_tls: { server_name: b } }\n", true},
      {"gateway: { listen: a:1, upstream: https://a, upstream_tls: { server_name: a/b } }\n",
       false},
      {"gateway: { listen: a:1, upstream: https://a, upstream_tls: { verify: no } }\n", false},
      {"gateway: { listen: \"[::]:1\", upstream: http://a, drain: 0 }\n", true},
      {"gateway: { listen: a:1 }\n", false},
      {"gateway: { listen: a:1, upstream: http://a, upgrades: [websocket, ssh] }\n", true},
      {"gateway: { listen: a:1, upstream: http://a, upgrades: none }\n", true},
      {"gateway: { listen: a:1, upstream: http://a, upgrades: [H2c] }\n", false},
      {"gateway: { listen: a:1, upstream: http://a, upgrades: ssh/2.0 }\n", false},
      {"gateway: { listen: a:1, upstream: http://a, cors: { origins: \"*\" } }\n", true},
      {"gateway: { listen: a:1, upstream: http://a, cors: { origins: [https://a:1] } }\n", true},
      {"gateway: { listen: a:1, upstream: http://a, cors: { origins: https://a/ } }\n", false},
      {"gateway: { listen: a:1, upstream: http://a, cors: { origins: [\"null\"] } }\n", false},
      {"gateway: { listen: a:1, upstream: http://a, cors: { origins: https://A } }\n", false},
      {"gateway: { listen: a:1, upstream: http://a, cors: {} }\n", false},
      {"gateway: { listen: a:1, upstream: [http://a, { url: http://b, weight: 3 }] }\n", true},
      {"gateway: { listen: a:1, upstream: { url: http://b, weight: 3 } }\n", true},
      {"gateway: { listen: a:1, upstream: [] }\n", false},
      {"gateway: { listen: a:1, upstream: http://a, health_path: /.sluice/health }\n", true},
      {"gateway: { listen: a:1, upstream: http://a, health_path: health }\n", false},
      {"gateway: { listen: a:1, upstream: http://a, health_path: \"/a?b\" }\n", false},
      {"gateway: { listen: a:1, upstream: [{ weight: 3 }] }\n", false},
      {"gateway: { listen: a:1, upstream: [{ url: http://b, weight: 0 }] }\n", false},
      {"gateway: { listen: a:1, upstream: http://a, upstream_health: { rest: 5 } }\n", false},
      {"limits: { header_bytes: 8k }\n", false},
      {"limits: { header_bytes: 8KiB, slots: 10k }\n", true},
      {"identity: { who: { header: a, cookie: b } }\n", false},
      {"identity: { ip: { ipv6_prefix: 129 } }\n", false},
      {"redis: {}\n", false},
      {"threads: many\n", false},
  };
  for (const Row& row : rows) ExpectBothSay(row);
}

TEST(SchemaTest, WhatItRefusesOfASharedStoreTheParserRefuses) {
  const Row stores[] = {
      {"{ url: redis://h }", true},
      {"{ url: unix:///run/redis.sock, deadline: 1ms, connect_wait: 0 }", true},
      {"{ url: rediss://h, tls: { server_name: a }, prefix: \"eu:api\", database: 3 }", true},
      {"{ url: http://h }", false},
      {"{ url: redis:// }", false},
      {"{}", false},
      {"{ sentinel: {} }", false},
      {"{ sentinel: { master: a, nodes: [b] } }", true},
      {"{ sentinel: { master: a, nodes: \"b:1\", username: c }, database: 1 }", true},
      {"{ sentinel: { master: \"a b\", nodes: [b] } }", false},
      {"{ sentinel: { master: a, nodes: [] } }", false},
      {"{ url: redis://h, sentinel: { master: a, nodes: [b] } }", false},
      {"{ cluster: [\"a:1\", b] }", true},
      {"{ cluster: a, username: c, tls: {} }", true},
      {"{ cluster: [] }", false},
      {"{ cluster: [a], url: redis://h }", false},
      {"{ cluster: [a], sentinel: { master: a, nodes: [b] } }", false},
      {"{ url: redis://h, prefix: \"a b\" }", false},
      {"{ url: redis://h, prefix: \"\" }", false},
      {"{ url: redis://h, hash_identities: 1 }", false},
      {"{ url: redis://h, deadline: 5 }", false},
      {"{ url: redis://h, tls: { verify: no } }", false},
      {"{ url: redis://h, tls: true }", false},
      {"{ url: redis://h, password: a }", false},
      {"{ url: redis://h, database: -1 }", false},
  };
  for (const Row& store : stores)
    ExpectBothSay({"store: { redis: " + store.text + " }\n", store.valid});
}

TEST(SchemaTest, WhatItRefusesOfSharesTheParserRefuses) {
  const Row rows[] = {
      {"rules: [{ name: a, key: ip, limit: 5/s, scope: node }]\n", true},
      {"rules: [{ name: a, key: ip, limit: 5/s, scope: all }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 5/s, on_store_failure: closed }]\n", true},
      {"rules: [{ name: a, key: ip, limit: 5/s, on_store_failure: { local: 1/2 } }]\n", true},
      {"rules: [{ name: a, key: ip, limit: 5/s, on_store_failure: { local: 1 } }]\n", true},
      {"rules: [{ name: a, key: ip, limit: 5/s, on_store_failure: { local: 0.5 } }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 5/s, on_store_failure: {} }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 5000/s, lease: auto }]\n", true},
      {"rules: [{ name: a, key: ip, limit: 5000/s, lease: off }]\n", true},
      {"rules: [{ name: a, key: ip, limit: 5000/s, lease: { max: 8, for: 20ms } }]\n", true},
      {"rules: [{ name: a, key: ip, limit: 5000/s, lease: { max: 7 } }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 5000/s, lease: { for: soon } }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 5000/s, lease: {} }]\n", false},
      {"rules: [{ name: a, key: ip, limit: 5000/s, lease: yes }]\n", false},
      {"node: { count: 3 }\n", true},
      {"node: { count: many }\n", false},
  };
  for (const Row& row : rows) ExpectBothSay(row);
}

TEST(SchemaTest, WhatItRefusesOfHealthChecksTheParserRefuses) {
  const Row checks[] = {
      {"{ path: \"/up?x\" }", true},      {"{ path: up }", false},
      {"{ path: \"/a b\" }", false},      {"{ every: 5s }", false},
      {"{ path: /, status: 204 }", true}, {"{ path: /, status: 200-299 }", true},
      {"{ path: /, status: 99 }", false}, {"{ path: /, status: 600 }", false},
      {"{ path: /, status: ok }", false}, {"{ path: /, failures: 0 }", false},
  };
  for (const Row& check : checks) {
    ExpectBothSay(
        {"gateway: { listen: a:1, upstream: http://a, health_check: " + check.text + " }\n",
         check.valid});
  }
}

TEST(ReferencePageTest, NamesEveryFieldAndEveryWord) {
  const std::string page = ReadAll(SLUICE_SOURCE_DIR "/docs/configuration.md");
  std::map<std::string, const json::object*> objects;
  FindObjects(SchemaValue(), "", objects);
  for (const auto& [place, properties] : objects) {
    for (const auto& [name, value] : *properties) {
      EXPECT_NE(page.find("`" + std::string(name) + "`"), std::string::npos)
          << place << " " << name;
    }
  }
  std::map<std::string, const json::array*> enums;
  FindEnums(SchemaValue(), "", enums);
  for (const auto& [place, words] : enums) {
    for (const auto& word : *words) {
      EXPECT_NE(page.find(std::string(word.as_string())), std::string::npos)
          << place << " " << word;
    }
  }
}

// Every block of YAML on the page is a file that loads.
TEST(ReferencePageTest, ItsExamplesLoad) {
  const std::string page = ReadAll(SLUICE_SOURCE_DIR "/docs/configuration.md");
  const std::string folder = FolderOfExamples({page});
  constexpr std::string_view kOpening = "```yaml\n";
  int blocks = 0;
  for (std::size_t at = 0; (at = page.find(kOpening, at)) != std::string::npos;) {
    at += kOpening.size();
    const std::string block = page.substr(at, page.find("```", at) - at);
    EXPECT_EQ(LoadText("configuration.md", block, folder, 1).diagnostics.Text(), "");
    ++blocks;
  }
  EXPECT_GE(blocks, 8);
}

}  // namespace
}  // namespace sluice::config
