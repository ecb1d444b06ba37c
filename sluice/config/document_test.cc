#include "sluice/config/document.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::config {
namespace {

// The complaints about `text`, as "line:column message" lines.
std::string Complaints(std::string_view text) {
  Diagnostics diagnostics;
  static_cast<void>(ParseDocument("f", text, diagnostics));
  std::string all;
  for (const Diagnostic& one : diagnostics.Sorted()) {
    all += std::to_string(one.location.line) + ":" + std::to_string(one.location.column) + " " +
           one.message + "\n";
  }
  return all;
}

// The tree of `text`, which has nothing wrong with it: {key: value}, [item], text, "quoted", ~;
// each text with its place.
std::string Tree(const Node& node) {
  std::string out;
  switch (node.kind) {
    case NodeKind::kNull:
      out = "~";
      break;
    case NodeKind::kText:
      out = node.quoted ? "'" + node.text + "'" : node.text;
      break;
    case NodeKind::kList:
      for (const Node& item : node.items) out += (out.empty() ? "" : ", ") + Tree(item);
      return "[" + out + "]";
    case NodeKind::kMap:
      for (const Node::Entry& entry : node.entries) {
        out += (out.empty() ? "" : ", ") + Tree(entry.key) + ": " + Tree(entry.value);
      }
      return "{" + out + "}";
  }
  return out + "@" + std::to_string(node.location.line) + ":" +
         std::to_string(node.location.column);
}

std::string Parse(std::string_view text) {
  Diagnostics diagnostics;
  const auto root = ParseDocument("f", text, diagnostics);
  EXPECT_EQ(diagnostics.Text(), "");
  return root ? Tree(*root) : "";
}

TEST(DocumentTest, EverythingKnowsWhereItStands) {
  EXPECT_EQ(Parse("a: 1\nlist:\n- x\n- {k: \"v\"}\nmap:\n  b: no\n"),
            "{a@1:1: 1@1:4, list@2:1: [x@3:3, {k@4:4: 'v'@4:7}], map@5:1: {b@6:3: no@6:6}}");
}

TEST(DocumentTest, ColumnsCountCharacters) {
  EXPECT_EQ(Parse("\xc3\xa9: [\xe3\x83\xa6, x]\n"), "{\xc3\xa9@1:1: [\xe3\x83\xa6@1:5, x@1:8]}");
}

TEST(DocumentTest, AMissingValueStandsAtItsKey) {
  EXPECT_EQ(Parse("a:\nb: ~\nc: null\nd:   # later\n\n"),
            "{a@1:1: ~@1:1, b@2:1: ~@2:4, c@3:1: ~@3:4, d@4:1: ~@4:1}");
}

TEST(DocumentTest, WindowsLineEndsAndAByteOrderMarkAreFine) {
  EXPECT_EQ(Parse("\xef\xbb\xbf"
                  "a: 1\r\nb: 2\r\n"),
            "{a@1:1: 1@1:4, b@2:1: 2@2:4}");
  EXPECT_EQ(Parse("a: 1\rb: 2\r"), "{a@1:1: 1@1:4, b@2:1: 2@2:4}");
  EXPECT_EQ(Parse("---\na: 1\n...\n"), "{a@2:1: 1@2:4}");
}

TEST(DocumentTest, AliasesStandForWhatTheyName) {
  EXPECT_EQ(Parse("a: &x {k: v}\nb: *x\n"), "{a@1:1: {k@1:8: v@1:11}, b@2:1: {k@1:8: v@1:11}}");
}

TEST(DocumentTest, SaysWhereAKeyIsGivenTwiceAndGoesOn) {
  Diagnostics diagnostics;
  const auto root = ParseDocument("f", "a: 1\nb: {x: 1, y: 2, x: 3}\na: 2\na: 3\n", diagnostics);
  ASSERT_TRUE(root.has_value());
  EXPECT_EQ(Tree(*root), "{a@1:1: 1@1:4, b@2:1: {x@2:5: 1@2:8, y@2:11: 2@2:14}}");
  EXPECT_EQ(Complaints("a: 1\nb: {x: 1, y: 2, x: 3}\na: 2\na: 3\n"),
            "2:17 `x` is given twice; the first is in line 2\n"
            "3:1 `a` is given twice; the first is in line 1\n"
            "4:1 `a` is given twice; the first is in line 1\n");
}

TEST(DocumentTest, SaysInPlainWordsWhatIsNoConfiguration) {
  const struct {
    std::string_view text;
    std::string_view complaints;
  } rows[] = {
      {"", "0:0 the file says nothing\n"},
      {"# only a comment\n", "0:0 the file says nothing\n"},
      {"---\n", "0:0 the file says nothing\n"},
      {"~", "0:0 the file says nothing\n"},
      {"- name: a\n", "1:1 the file must begin with a field, got a list\n"},
      {"rules\n", "1:1 the file must begin with a field, got `rules`\n"},
      {"a: 1\n---\nb: 1\n", "2:1 a second document begins here\n"},
      {"- a\nb: 1\n", "2:1 this belongs to nothing that stands above it\n"},
      {"a:\n\tb: 1\n", "2:1 a tab in the indentation\n"},
      {"a:\n  b: 1\n\tc: 1\n", "3:1 a tab in the indentation\n"},
      {"a:\n    b: 1\n  c: 2\n", "3:3 this line fits into none of the maps above it\n"},
      {"a: b: c\n", "1:5 a second `:` where the value of a field is expected\n"},
      {"a: [1, 2\n", "1:4 this `[` is never closed\n"},
      {"a: {b: 1\n", "1:4 this `{` is never closed\n"},
      {"}", "1:1 this bracket closes nothing\n"},
      {"a: \"x\nb: 1\n", "1:4 this quote is never closed\n"},
      {"a: 'x''\nb: 1\n", "1:4 this quote is never closed\n"},
      {"a: &n \"x\nb: 1\n", "1:4 this quote is never closed\n"},
      {"a: \"x", "1:6 a quote above is never closed\n"},
      {"a: @x\n", "1:4 no value can begin with this character\n"},
      {"a: *x\n", "1:4 this alias stands for nothing\n"},
      {"a: &x [*x]\n", "1:8 this alias stands inside what it stands for\n"},
      {"a: !foo x\n", "1:4 tags mean nothing here\n"},
      {"a: !!binary x\n", "1:4 tags mean nothing here\n"},
      {"? [a]\n: b\n", "1:3 a key must be text\n"},
      {"a: &x {b: 1}\nc: {<<: *x}\n", "2:5 merge keys are not supported\n"},
      {"a: \"\\q\"\n", "1:7 this is no YAML: unknown escape character: q\n"},
      {std::string_view("a: x\0y\n", 7), "1:5 the file is not UTF-8 text from here on\n"},
      {"a: \xc3\xa9\xff\n", "1:5 the file is not UTF-8 text from here on\n"},
      {"\xff\xfe"
       "a\0",
       "1:1 the file is not UTF-8 text from here on\n"},
  };
  for (const auto& row : rows) EXPECT_EQ(Complaints(row.text), row.complaints) << row.text;
}

TEST(DocumentTest, QuotesInsideQuotesAreClosedOnes) {
  EXPECT_EQ(Parse("a: 'it''s'\nb: \"\\\"\"\nc: \"\"\n"),
            "{a@1:1: 'it's'@1:4, b@2:1: '\"'@2:4, c@3:1: ''@3:4}");
  EXPECT_EQ(Parse("a: |\n  \"x\n"), "{a@1:1: '\"x\n'@1:4}");
}

TEST(DocumentTest, NoFileIsTooMuch) {
  std::string deep = "a: ";
  for (int i = 0; i < 100; ++i) deep += "[";
  EXPECT_EQ(Complaints(deep + std::string(100, ']')), "1:35 nested more than 32 deep\n");
  for (const auto* opening : {"[", "{a: ", "- ", "? "}) {
    std::string deeper = "a:\n ";
    while (deeper.size() < 500'000) deeper += opening;
    EXPECT_NE(Complaints(deeper).find("nested more than 32 deep"), std::string::npos) << opening;
  }

  std::string laughs = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char name = 'b'; name <= 'k'; ++name) {
    const std::string last(1, static_cast<char>(name - 1));
    laughs += std::string(1, name) + ": &" + name + " [";
    for (int i = 0; i < 10; ++i) laughs += (i > 0 ? ", *" : "*") + last;
    laughs += "]\n";
  }
  EXPECT_NE(Complaints(laughs).find("more than 200000 values"), std::string::npos);

  std::string long_text = "a: &a " + std::string(500'000, 'x') + "\nb: [";
  for (int i = 0; i < 10'000; ++i) long_text += "*a,";
  EXPECT_NE(Complaints(long_text + "]\n").find("more than 200000 values"), std::string::npos);

  EXPECT_EQ(Complaints(std::string(kMaxDocumentBytes + 1, ' ')),
            "0:0 the file has 1048577 bytes; the most is 1048576\n");
}

TEST(DocumentTest, SaysWhyAFileCanNotBeRead) {
  Diagnostics diagnostics;
  EXPECT_FALSE(ReadDocument("/nowhere/sluice.yaml", diagnostics).has_value());
  EXPECT_FALSE(ReadDocument("/", diagnostics).has_value());
  EXPECT_EQ(diagnostics.Text(),
            "/nowhere/sluice.yaml: error: cannot be read: No such file or directory\n"
            "/: error: cannot be read: it is a folder\n"
            "2 errors in 2 files\n");
}

}  // namespace
}  // namespace sluice::config
