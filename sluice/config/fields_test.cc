#include "sluice/config/fields.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

// What `read` complains about in `text`: "line:column message = hint" lines.
std::string Complaints(std::string_view text, const std::function<void(Fields&)>& read) {
  Diagnostics diagnostics;
  const auto root = ParseDocument("f", text, diagnostics);
  if (!root) return "no document";
  Fields fields(*root, "a rule", diagnostics);
  read(fields);
  std::string all;
  for (const Diagnostic& one : diagnostics.Sorted()) {
    all += std::to_string(one.location.line) + ":" + std::to_string(one.location.column) + " " +
           one.message + (one.hint.empty() ? "" : " = " + one.hint) + "\n";
  }
  return all;
}

TEST(FieldsTest, NamesEveryUnknownFieldAndWhatWasMeant) {
  EXPECT_EQ(Complaints("name: a\nalgoritm: x\ncolour: red\nblock_for: 1m\n",
                       [](Fields& fields) {
                         EXPECT_TRUE(fields.Take("name").has_value());
                         EXPECT_FALSE(fields.Take("algorithm").has_value());
                         fields.Later({"block_for"});
                         fields.Finish();
                       }),
            "2:1 unknown field `algoritm`; did you mean `algorithm`?\n"
            "3:1 unknown field `colour` = a rule has name, algorithm\n"
            "4:1 `block_for` is known, but not in this version = leave it out\n");
}

TEST(FieldsTest, ComplainsAboutFieldsWithoutAValueAndThoseThatAreMissing) {
  EXPECT_EQ(
      Complaints("name:\n",
                 [](Fields& fields) {
                   EXPECT_FALSE(fields.Require("name").has_value());
                   EXPECT_FALSE(fields.Require("limit", "write `limit: 100/min`").has_value());
                   fields.Finish();
                 }),
      "1:1 `name` has no value\n"
      "1:1 a rule needs `limit` = write `limit: 100/min`\n");
}

TEST(FieldsTest, RefusesAFieldWhereItMeansNothing) {
  EXPECT_EQ(Complaints("burst: 5\n",
                       [](Fields& fields) {
                         fields.Refuse("burst", "means nothing to a fixed window", "leave it out");
                         fields.Refuse("align", "means nothing");
                         fields.Finish();
                       }),
            "1:1 `burst` means nothing to a fixed window = leave it out\n");
}

TEST(FieldsTest, AnythingButAMapHasNoFields) {
  Diagnostics diagnostics;
  const auto root = ParseDocument("f", "a: [x]\n", diagnostics);
  ASSERT_TRUE(root.has_value());
  Fields fields(*root->Find("a"), "a rule", diagnostics);
  EXPECT_FALSE(fields.Require("name").has_value());
  fields.Finish();
  EXPECT_EQ(diagnostics.Text(),
            "f:1:4: error: a rule must be a map of fields, got a list\n"
            "    1 | a: [x]\n      |    ^\n1 error in 1 file\n");
}

TEST(ValueTest, ReadsWhatItIsAskedForAndSaysWhatItFound) {
  enum class Mode { kEnforce, kShadow };
  static constexpr std::array<Value::Word<Mode>, 2> kModes = {
      {{"enforce", Mode::kEnforce}, {"shadow", Mode::kShadow}}};
  const auto read = [](Fields& fields) {
    const auto take = [&](std::string_view name) { return fields.Take(name); };
    if (const auto v = take("text")) {
      EXPECT_EQ(v->Text(), "5");
    }
    if (const auto v = take("yes")) {
      EXPECT_EQ(v->Bool(), true);
    }
    if (const auto v = take("int")) {
      EXPECT_EQ(v->Integer(1, 10), 7);
    }
    if (const auto v = take("size")) {
      EXPECT_EQ(v->Bytes(1, 1 << 20), 65536);
    }
    if (const auto v = take("wait")) {
      EXPECT_EQ(v->Length(1ms, 1min), 5s);
    }
    if (const auto v = take("limit")) {
      EXPECT_EQ(v->Rate()->count, 5);
    }
    if (const auto v = take("mode")) {
      EXPECT_EQ(v->OneOf(kModes, {"soft"}), Mode::kShadow);
    }
    if (const auto v = take("one")) {
      EXPECT_EQ(v->Items().size(), 1u);
    }
    if (const auto v = take("many")) {
      EXPECT_EQ(v->Items().size(), 2u);
    }
    fields.Finish();
  };
  EXPECT_EQ(Complaints("text: 5\nyes: true\nint: 7\nsize: 64KiB\nwait: 5s\nlimit: 5/s\n"
                       "mode: shadow\none: x\nmany: [x, y]\n",
                       read),
            "");

  const auto complain = [](Fields& fields) {
    for (const auto* name : {"t1", "t2"}) {
      if (const auto v = fields.Take(name)) {
        EXPECT_FALSE(v->Text().has_value());
      }
    }
    for (const auto* name : {"b1", "b2"}) {
      if (const auto v = fields.Take(name)) {
        EXPECT_FALSE(v->Bool().has_value());
      }
    }
    for (const auto* name : {"i1", "i2", "i3", "i4", "i5"}) {
      if (const auto v = fields.Take(name)) {
        EXPECT_FALSE(v->Integer(1, 10).has_value());
      }
    }
    for (const auto* name : {"d1", "d2", "d3"}) {
      if (const auto v = fields.Take(name)) {
        EXPECT_FALSE(v->Length(1ms, 90s).has_value());
      }
    }
    if (const auto v = fields.Take("r1")) {
      EXPECT_FALSE(v->Rate().has_value());
    }
    if (const auto v = fields.Take("s1")) {
      EXPECT_FALSE(v->Bytes(1, 1024).has_value());
    }
    for (const auto* name : {"m1", "m2", "m3"}) {
      if (const auto v = fields.Take(name)) {
        EXPECT_FALSE(v->OneOf(kModes, {"soft"}).has_value());
      }
    }
    if (const auto v = fields.Take("l1")) {
      EXPECT_TRUE(v->Items().empty());
    }
    fields.Finish();
  };
  EXPECT_EQ(
      Complaints("t1: [x]\nt2: ''\nb1: yes\nb2: 'true'\ni1: x\ni2: 0\ni3: 11\ni4: -1\ni5: {a: 1}\n"
                 "d1: 5\nd2: 2m\nd3: 0\nr1: 100\ns1: 2KiB\nm1: enforced\nm2: soft\nm3: [shadow]\n"
                 "l1: []\n",
                 complain),
      "1:5 `t1` must be text, got a list\n"
      "2:5 `t2` must be text, got an empty text\n"
      "3:5 `b1` must be true or false, got `yes`\n"
      "4:5 `b2` must be true or false, got `true`\n"
      "5:5 `i1` must be a whole number, got `x` = write digits, and k, M or G for thousands, "
      "millions, billions\n"
      "6:5 `i2` must be at least 1, got 0\n"
      "7:5 `i3` must be at most 10, got 11\n"
      "8:5 `i4` must be at least 1, got -1\n"
      "9:5 `i5` must be a whole number, got a map\n"
      "10:5 `d1` must have a unit, got `5` = write for example `5s` or `5ms`\n"
      "11:5 `d2` must be at most 90s, got 2m\n"
      "12:5 `d3` must be at least 1ms, got 0\n"
      "13:5 `r1` must say a period, got `100` = write for example `100/min`\n"
      "14:5 `s1` must be at most 1024 bytes, got 2KiB\n"
      "15:5 `m1` must be one of enforce, shadow; got `enforced` = did you mean `enforce`?\n"
      "16:5 `m2: soft` is known, but not in this version = this version has enforce, shadow\n"
      "17:5 `m3` must be one of enforce, shadow; got a list\n"
      "18:5 `l1` must not be an empty list\n");
}

}  // namespace
}  // namespace sluice::config
