#include "sluice/config/diagnostics.h"

#include <gtest/gtest.h>

namespace sluice::config {
namespace {

TEST(DiagnosticsTest, ShowsTheLineAndSaysWhatToWriteInOrderOfThePlaces) {
  Diagnostics diagnostics;
  const FileId file = diagnostics.AddFile("rules/api.yaml",
                                          "rules:\n"
                                          "  - name: api\n"
                                          "    algoritm: fixed-window\n"
                                          "    burst: 0\n");
  diagnostics.Error({file, 4, 12}, "`burst` must be at least 1, got 0",
                    "a burst of 0 denies every request; to deny on purpose write `deny: true`");
  diagnostics.Error({file, 3, 5}, "unknown field `algoritm`; did you mean `algorithm`?");
  EXPECT_EQ(diagnostics.Text("generation 41 of the rules stays in force"),
            "rules/api.yaml:3:5: error: unknown field `algoritm`; did you mean `algorithm`?\n"
            "    3 |     algoritm: fixed-window\n"
            "      |     ^\n"
            "rules/api.yaml:4:12: error: `burst` must be at least 1, got 0\n"
            "    4 |     burst: 0\n"
            "      |            ^\n"
            "      = a burst of 0 denies every request; to deny on purpose write `deny: true`\n"
            "2 errors in 1 file; generation 41 of the rules stays in force\n");
}

TEST(DiagnosticsTest, CountsErrorsWarningsAndFiles) {
  Diagnostics diagnostics;
  EXPECT_EQ(diagnostics.Text("nothing changes"), "");
  const FileId rules = diagnostics.AddFile("a.yaml", "x: 1\n");
  const FileId plans = diagnostics.AddFile("plans.csv", "");
  diagnostics.Warning({rules, 1, 1}, "odd");
  EXPECT_EQ(diagnostics.Text(),
            "a.yaml:1:1: warning: odd\n    1 | x: 1\n      | ^\n"
            "1 warning in 1 file\n");
  diagnostics.Error({plans, 0, 0}, "cannot be read: no such file");
  EXPECT_EQ(diagnostics.errors(), 1u);
  EXPECT_EQ(diagnostics.warnings(), 1u);
  EXPECT_EQ(diagnostics.Text(),
            "a.yaml:1:1: warning: odd\n    1 | x: 1\n      | ^\n"
            "plans.csv: error: cannot be read: no such file\n"
            "1 error and 1 warning in 2 files\n");
}

TEST(DiagnosticsTest, PutsTheCaretUnderTheCharacterAfterUmlautsAndTabs) {
  Diagnostics diagnostics;
  const FileId file = diagnostics.AddFile("a", "\t\xc3\xa9: x\n");
  diagnostics.Error({file, 1, 5}, "m");
  EXPECT_EQ(diagnostics.Text(),
            "a:1:5: error: m\n    1 | \t\xc3\xa9: x\n      | \t   ^\n"
            "1 error in 1 file\n");
}

TEST(DiagnosticsTest, KeepsControlCharactersAndEndlessLinesFromTheTerminal) {
  Diagnostics diagnostics;
  const FileId file = diagnostics.AddFile("a\x1b.yaml", "\x1b[2J: " + std::string(100000, 'x'));
  diagnostics.Error({file, 1, 50000}, "bad \x1b[31m\nname " + Quoted(std::string(5000, 'y')));
  const std::string text = diagnostics.Text();
  EXPECT_EQ(text.find('\x1b'), text.npos);
  EXPECT_LT(text.size(), 600u);
  EXPECT_NE(text.find("a\\x1b.yaml:1:50000: error: bad \\x1b[31m\\nname `yyy"), text.npos);
  EXPECT_NE(text.find("    1 | ...xxx"), text.npos);
}

TEST(DiagnosticsTest, ShowsNoPassword) {
  const auto shown = [](const std::string& line) {
    Diagnostics diagnostics;
    const FileId file = diagnostics.AddFile("a", line + "\n");
    diagnostics.Error({file, 1, 1}, "m");
    const std::string text = diagnostics.Text();
    const std::size_t begin = text.find("| ") + 2;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(shown("url: redis://ann:s3cret@h/1"), "url:*******************@h/1");
  EXPECT_EQ(shown("{ a: \"redis://:s3@cret@h\", b: 1 }"), "{ a: \"redis://********@h\", b: 1 }");
  EXPECT_EQ(shown("  redis://:s\xc3\xa9@h"), "  redis://***@h");
  EXPECT_EQ(shown("{ url: ann:s3 cret@h }"), "{ url:************@h }");
  EXPECT_EQ(shown("{ \"password\": s3cret, tls: {} }"), "{ \"password\": *****************");
  EXPECT_EQ(shown("{ url: redis://h, password_file: a }"), "{ url: redis://h, password_file: a }");
  EXPECT_EQ(shown("name: a@b"), "name: a@b");
  EXPECT_EQ(shown("password:"), "password:");
  EXPECT_EQ(shown("{ url: \"redis://:s3cret\" }"), "{ url: \"redis://*******\" }");
  EXPECT_EQ(shown("{ url: rediss://ann:s3cret }"), "{ url: rediss://********** }");
  EXPECT_EQ(shown("{ url: \"redis://h:6379/2\" }"), "{ url: \"redis://h:6379/2\" }");
}

TEST(DiagnosticsTest, SaysNoPassword) {
  Diagnostics diagnostics;
  const FileId file = diagnostics.AddFile("a", "");
  diagnostics.Error({file, 1, 1}, "got `redis://ann:s3cret@h`", "write redis://HOST:PORT");
  diagnostics.Warning({file, 1, 1}, "got `redis://ann:s3cret`");
  EXPECT_EQ(diagnostics.Text().find("s3cret"), std::string::npos) << diagnostics.Text();
}

TEST(DiagnosticsTest, TellsABoundedNumberAndCountsTheRest) {
  Diagnostics diagnostics;
  const FileId file = diagnostics.AddFile("a", "");
  for (int i = 1; i <= 1000; ++i) diagnostics.Error({file, i, 1}, "m");
  const std::string text = diagnostics.Text();
  EXPECT_NE(text.find("a:100:1"), text.npos);
  EXPECT_EQ(text.find("a:101:1"), text.npos);
  EXPECT_NE(text.find("(the first 100 of 1000)\n1000 errors in 1 file\n"), text.npos);
}

TEST(QuotedTest, CutsBetweenCharacters) {
  std::string umlauts;
  for (int i = 0; i < 40; ++i) umlauts += "\xc3\xa9";
  EXPECT_EQ(Quoted("a" + umlauts).size(), 2 + 59 + 3u);
  EXPECT_EQ(Quoted("x"), "`x`");
}

}  // namespace
}  // namespace sluice::config
