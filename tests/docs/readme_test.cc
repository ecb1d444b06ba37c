// The README is what people copy from first: its configuration has to load, and the files it points
// to have to be there.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/config/load.h"

namespace sluice {
namespace {

std::string Page(const std::string& name) {
  std::ifstream in(std::string(SLUICE_SOURCE_DIR "/") + name);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What stands between ```LANGUAGE and ```.
std::vector<std::string> Blocks(const std::string& page, std::string_view language) {
  const std::string opening = "```" + std::string(language) + "\n";
  std::vector<std::string> blocks;
  for (std::size_t at = 0; (at = page.find(opening, at)) != std::string::npos;) {
    at += opening.size();
    blocks.push_back(page.substr(at, page.find("\n```", at) + 1 - at));
  }
  return blocks;
}

TEST(ReadmeTest, ItsConfigurationLoadsWithoutAWarning) {
  const std::vector<std::string> blocks = Blocks(Page("README.md"), "yaml");
  ASSERT_FALSE(blocks.empty());
  for (const std::string& block : blocks) {
    const config::LoadResult result =
        config::LoadText("sluice.yaml", block, SLUICE_SOURCE_DIR "/docs/examples", 1);
    EXPECT_TRUE(result.config.has_value());
    EXPECT_EQ(result.diagnostics.Text(), "");
  }
}

TEST(ReadmeTest, ItsSampleErrorIsWhatTheParserSays) {
  const std::string page = Page("README.md");
  std::string broken = Blocks(page, "yaml").at(0);
  const std::size_t burst = broken.find("burst: 20", broken.find("name: api"));
  ASSERT_NE(burst, std::string::npos);
  broken.replace(burst, 9, "burst: 0");
  const std::string told =
      config::LoadText("sluice.yaml", broken, SLUICE_SOURCE_DIR "/docs/examples", 1)
          .diagnostics.Text();
  std::size_t end = 0;
  for (int line = 0; line < 4; ++line) end = told.find('\n', end) + 1;
  EXPECT_NE(page.find(told.substr(0, end)), std::string::npos) << told;
}

TEST(ReadmeTest, TheFilesThatPagesPointToAreThere) {
  const std::regex link(R"(\]\(([^)#:]+)\))");
  for (const char* name : {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"}) {
    const std::string page = Page(name);
    ASSERT_FALSE(page.empty()) << name;
    for (std::sregex_iterator it(page.begin(), page.end(), link), end; it != end; ++it) {
      EXPECT_TRUE(std::filesystem::exists(SLUICE_SOURCE_DIR "/" + (*it)[1].str()))
          << name << " points to " << (*it)[1];
    }
  }
}

// ARCHITECTURE.md names files in backticks: `sluice/...`, or a part of such a path. A folder that
// it names has to be there.
TEST(ArchitectureTest, TheFoldersThatItNamesAreThere) {
  const std::string page = Page("ARCHITECTURE.md");
  const std::regex folder(R"(`((?:sluice|apps|tests|docs|tools|api|bench)/(?:[a-z_]+/)*)`)");
  int named = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), folder), end; it != end; ++it, ++named) {
    EXPECT_TRUE(std::filesystem::is_directory(SLUICE_SOURCE_DIR "/" + (*it)[1].str())) << (*it)[1];
  }
  EXPECT_GE(named, 15);
}

}  // namespace
}  // namespace sluice
