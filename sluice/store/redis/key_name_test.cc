#include "sluice/store/redis/key_name.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace sluice::redis {
namespace {

struct Part {
  std::string bytes;
  bool fallback = false;
};

// As RuleSet makes them.
std::string KeyBytes(const std::string& rule, const std::vector<Part>& parts) {
  std::string key = std::to_string(rule.size()) + ":" + rule;
  for (const Part& part : parts) {
    const std::uint32_t length = static_cast<std::uint32_t>(part.bytes.size()) |
                                 (part.fallback ? std::uint32_t{1} << 31 : 0);
    key.append(reinterpret_cast<const char*>(&length), sizeof length).append(part.bytes);
  }
  return key;
}

std::string Name(const std::string& key, const KeyOptions& options = {},
                 KeyKind kind = KeyKind::kCounter) {
  std::string name;
  (void)AppendKeyName(options, kind, key, &name);
  return name;
}

std::string TagOf(const std::string& name) {
  const std::size_t begin = name.find('{');
  return name.substr(begin + 1, name.find('}') - begin - 1);
}

TEST(KeyNameTest, IsReadable) {
  const std::string name = Name(KeyBytes("api", {{"ann"}, {"/v1/orders"}}));
  EXPECT_TRUE(name.starts_with("sluice:1{")) << name;
  EXPECT_TRUE(name.ends_with("}api:ann:/v1/orders")) << name;
  EXPECT_EQ(TagOf(name).size(), 11U);
  EXPECT_TRUE(Name(KeyBytes("all", {})).ends_with("}all"));
  EXPECT_TRUE(Name(KeyBytes("api", {{"ann"}}), {.prefix = "shop:eu"}).starts_with("shop:eu:1{"));
}

// The name outlives this program: every node, also of another version, must make the same.
TEST(KeyNameTest, IsTheSameEverywhere) {
  EXPECT_EQ(Name(KeyBytes("api", {{"ann"}})), "sluice:1{Kb7OoxEkfMP}api:ann");
}

TEST(KeyNameTest, LetsNoByteThrough) {
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  const std::string name =
      Name(KeyBytes("r", {{all.substr(0, 60)}, {all.substr(60, 70)}, {all.substr(130, 60)}}));
  for (const std::string& key :
       {name, Name(KeyBytes("a {b}\r\n", {{"{x}"}, {"a}b"}, {"{}"}})),
        Name("no rule's bytes {}\r\n \x01"), Name(KeyBytes("r", {{"x"}}), {.prefix = "a{b} \n"})}) {
    for (const char c : key) {
      EXPECT_TRUE(c > ' ' && c < 127) << key;
    }
    EXPECT_EQ(std::count(key.begin(), key.end(), '{'), 1) << key;
    EXPECT_EQ(std::count(key.begin(), key.end(), '}'), 1) << key;
  }
}

TEST(KeyNameTest, NoTwoInputsGiveOneName) {
  std::mt19937_64 random(7);
  // Few bytes, so that inputs are often nearly equal; among them all that could separate.
  const std::string bytes("a:!#%{}~A3\0\n ", 13);
  const auto text = [&](std::size_t most) {
    std::string made;
    for (std::size_t i = random() % (most + 1); i > 0; --i) {
      made.push_back(bytes[random() % bytes.size()]);
    }
    return made;
  };
  for (const bool hashed : {false, true}) {
    const KeyOptions options{.hash_identities = hashed};
    std::map<std::string, std::string> seen;
    for (int i = 0; i < 100'000; ++i) {
      std::vector<Part> parts(random() % 4);
      for (Part& part : parts) part = {text(3), random() % 4 == 0};
      const std::string key = random() % 20 == 0 ? text(8) : KeyBytes(text(2), parts);
      const auto [found, fresh] = seen.emplace(Name(key, options), key);
      ASSERT_EQ(found->second, key) << found->first;
    }
  }
  EXPECT_NE(Name(KeyBytes("api", {{"ann"}})),
            Name(KeyBytes("api", {{"ann"}}), {}, KeyKind::kSlots));
  EXPECT_NE(Name(KeyBytes("api", {{"ann"}})),
            Name(KeyBytes("api", {{"ann"}}), {}, KeyKind::kBlock));
}

TEST(KeyNameTest, AllRulesOfOneIdentityLieInOneSlot) {
  EXPECT_EQ(TagOf(Name(KeyBytes("api", {{"ann"}}))), TagOf(Name(KeyBytes("login", {{"ann"}}))));
  EXPECT_NE(TagOf(Name(KeyBytes("api", {{"ann"}}))), TagOf(Name(KeyBytes("api", {{"bob"}}))));
  const KeyOptions hashed{.hash_identities = true};
  EXPECT_EQ(TagOf(Name(KeyBytes("api", {{"ann"}}), hashed)),
            TagOf(Name(KeyBytes("login", {{"ann"}}), hashed)));
}

TEST(KeyNameTest, TheMarkOfAnUndoLiesInTheSlotOfItsCounterAndIsNoCounter) {
  for (const std::string prefix : {"sluice", "a:1b", "a{b}:1n"}) {
    for (const KeyKind kind : {KeyKind::kCounter, KeyKind::kSlots, KeyKind::kBlock}) {
      const std::string counter = Name(KeyBytes("api", {{"{ann}"}}), {.prefix = prefix}, kind);
      std::string mark;
      AppendMarkName(counter, 77, 1, &mark);
      EXPECT_EQ(TagOf(mark), TagOf(counter));
      const std::size_t tag = mark.find('{');
      EXPECT_TRUE(mark.substr(0, tag).ends_with(":1u")) << mark;
      EXPECT_EQ(mark.substr(0, tag - 1), counter.substr(0, tag - 1)) << "prefix and version";
      std::string others[2];
      AppendMarkName(counter, 77, 2, &others[0]);
      AppendMarkName(counter, 78, 1, &others[1]);
      EXPECT_NE(mark, others[0]);
      EXPECT_NE(mark, others[1]);
    }
  }
}

TEST(KeyNameTest, HashesIdentitiesByChoiceAndLongOnesAlways) {
  const HashKey key(HashKind::kSipHash13, {1, 2, 3});
  const std::string plain = Name(KeyBytes("api", {{"ann"}}), {.hash_identities = true});
  const std::string keyed =
      Name(KeyBytes("api", {{"ann"}}), {.hash_identities = true, .hash_key = &key});
  EXPECT_EQ(plain.find("ann"), std::string::npos);
  EXPECT_NE(plain, keyed);
  const std::string longer(70'000, 'x');
  const std::string name = Name(KeyBytes("api", {{longer}}));
  EXPECT_LT(name.size(), 80U);
  EXPECT_NE(name, Name(KeyBytes("api", {{longer + "x"}})));
  EXPECT_TRUE(Name(KeyBytes("api", {{std::string(200, 'x')}})).ends_with("xxx"));
}

TEST(KeyNameTest, AppendsAndDrawsTheSameBits) {
  std::string out = "before ";
  const std::uint32_t bits = AppendKeyName({}, KeyKind::kCounter, KeyBytes("api", {{"ann"}}), &out);
  EXPECT_EQ(out, "before " + Name(KeyBytes("api", {{"ann"}})));
  std::string again;
  EXPECT_EQ(bits, AppendKeyName({}, KeyKind::kCounter, KeyBytes("api", {{"ann"}}), &again));
  EXPECT_NE(bits, AppendKeyName({}, KeyKind::kCounter, KeyBytes("api", {{"bob"}}), &again));
  EXPECT_NE(bits, AppendKeyName({}, KeyKind::kCounter, KeyBytes("login", {{"ann"}}), &again));
}

}  // namespace
}  // namespace sluice::redis
