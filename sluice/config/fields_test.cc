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
  EXPECT_EQ(Complaints("name: a\nalgoritm: x\ncolour: red\nlease: auto\n",
                       [](Fields& fields) {
                         EXPECT_TRUE(fields.Take("name").has_value());
                         EXPECT_FALSE(fields.Take("algorithm").has_value());
                         fields.Later({"lease"});
                         fields.Finish();
                       }),
            "2:1 unknown field `algoritm`; did you mean `algorithm`?\n"
            "3:1 unknown field `colour` = a rule has name, algorithm\n"
            "4:1 `lease` is known, but not in this version = leave it out\n");
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

enum class Mode { kEnforce, kShadow };
constexpr std::array<Value::Word<Mode>, 2> kModes = {
    {{"enforce", Mode::kEnforce}, {"shadow", Mode::kShadow}}};

TEST(ValueTest, ReadsWhatItIsAskedFor) {
  EXPECT_EQ(Complaints("text: 5\nyes: true\nint: 7\nsize: 64KiB\nwait: 5s\nlimit: 5/s\n"
                       "mode: shadow\none: x\nmany: [x, y]\n",
                       [](Fields& fields) {
                         EXPECT_EQ(fields.Take("text")->Text(), "5");
                         EXPECT_EQ(fields.Take("yes")->Bool(), true);
                         EXPECT_EQ(fields.Take("int")->Integer(1, 10), 7);
                         EXPECT_EQ(fields.Take("size")->Bytes(1, 1 << 20), 65536);
                         EXPECT_EQ(fields.Take("wait")->Length(1ms, 1min), 5s);
                         EXPECT_EQ(fields.Take("limit")->Rate()->count, 5);
                         EXPECT_EQ(fields.Take("mode")->OneOf(kModes, {"soft"}), Mode::kShadow);
                         EXPECT_EQ(fields.Take("one")->Items().size(), 1u);
                         EXPECT_EQ(fields.Take("many")->Items().size(), 2u);
                         fields.Finish();
                       }),
            "");
}

TEST(ValueTest, SaysWhatItFoundInstead) {
  const auto text = [](const Value& v) { return v.Text().has_value(); };
  const auto boolean = [](const Value& v) { return v.Bool().has_value(); };
  const auto integer = [](const Value& v) { return v.Integer(1, 10).has_value(); };
  const auto bytes = [](const Value& v) { return v.Bytes(1, 1024).has_value(); };
  const auto length = [](const Value& v) { return v.Length(1ms, 90s).has_value(); };
  const auto rate = [](const Value& v) { return v.Rate().has_value(); };
  const auto mode = [](const Value& v) { return v.OneOf(kModes, {"soft"}).has_value(); };
  const auto items = [](const Value& v) { return !v.Items().empty(); };
  const struct {
    const char* value;
    std::function<bool(const Value&)> read;
    const char* complaint;
  } rows[] = {
      {"[x]", text, "`v` must be text, got a list"},
      {"''", text, "`v` must be text, got an empty text"},
      {"yes", boolean, "`v` must be true or false, got `yes`"},
      {"'true'", boolean, "`v` must be true or false, got `true`"},
      {"x", integer,
       "`v` must be a whole number, got `x` = write digits, and k, M or G for thousands, millions, "
       "billions"},
      {"0", integer, "`v` must be at least 1, got 0"},
      {"11", integer, "`v` must be at most 10, got 11"},
      {"-1", integer, "`v` must be at least 1, got -1"},
      {"{ a: 1 }", integer, "`v` must be a whole number, got a map"},
      {"5", length, "`v` must have a unit, got `5` = write for example `5s` or `5ms`"},
      {"2m", length, "`v` must be at most 1m30s, got 2m"},
      {"0", length, "`v` must be at least 1ms, got 0"},
      {"100", rate, "`v` must say a period, got `100` = write for example `100/min`"},
      {"2KiB", bytes, "`v` must be at most 1024 bytes, got 2KiB"},
      {"enforced", mode,
       "`v` must be one of enforce, shadow; got `enforced` = did you mean `enforce`?"},
      {"soft", mode,
       "`v: soft` is known, but not in this version = this version has enforce, shadow"},
      {"[shadow]", mode, "`v` must be one of enforce, shadow; got a list"},
      {"[]", items, "`v` must not be an empty list"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Complaints(std::string("v: ") + row.value + "\n",
                         [&](Fields& fields) { EXPECT_FALSE(row.read(*fields.Take("v"))); }),
              std::string("1:4 ") + row.complaint + "\n");
  }
}

}  // namespace
}  // namespace sluice::config
