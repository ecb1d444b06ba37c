// What a configuration reads from disk: itself, and the plan file.

#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT: mkdtemp

#include <filesystem>
#include <fstream>
#include <string>

#include "sluice/config/load.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

class LoadFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "sluice_load_files_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(std::string_view text) const { WriteFile("plans.csv", text); }
  void WriteFile(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }
  std::string folder_;
};

Config Good(std::string_view text, const std::string& base_dir) {
  LoadResult result = LoadText("sluice.yaml", text, base_dir, 1);
  EXPECT_EQ(result.diagnostics.Text(), "");
  return result.config ? *std::move(result.config) : Config{};
}

constexpr std::string_view kWithPlans =
    "identity: { api_key: { header: X-API-Key } }\n"
    "plans: { file: plans.csv, key: api_key, default: free }\n"
    "rules:\n"
    "  - name: api\n"
    "    key: api_key\n"
    "    limit: 100/min\n"
    "    plans:\n"
    "      pro: { limit: 1000/min, burst: 200 }\n";

TEST_F(LoadFilesTest, GivesACallerTheNumbersOfItsPlan) {
  Write("key,plan\r\n# the first customers\r\n\r\nk-1,pro\r\n \"k,2\" , \"p\"\"x\" \r\nk-3,pro");
  const Config config = Good(kWithPlans, folder_);
  ASSERT_NE(config.rules, nullptr);
  const PlanTable& plans = config.rules->options().plans;
  EXPECT_EQ(plans.size(), 3u);
  EXPECT_EQ(plans.PlanOf("k-1"), "pro");
  EXPECT_EQ(plans.PlanOf("k,2"), "p\"x");
  EXPECT_EQ(plans.PlanOf("nobody"), "free");
  EXPECT_EQ(plans.key().name, "X-API-Key");
  const Rule& rule = config.rules->rules()[0];
  ASSERT_EQ(rule.limits.size(), 2u);
  EXPECT_EQ(rule.limits[1].plan, "pro");
  EXPECT_EQ(rule.limits[1].limit, Limit(*token_bucket::MakeLimit({1000, 1min}, 200)));
}

TEST_F(LoadFilesTest, SaysWhatIsWrongWithTheFileWithoutShowingAnyKey) {
  Write("secret-1,pro\nsecret-2\nsecret-3,pro,x\nsecret-1,free\n,pro\nsecret-4,\n\"secret-5,pro\n");
  const auto result = LoadText("sluice.yaml", kWithPlans, folder_, 1);
  const std::string text = result.diagnostics.Text();
  const std::string plans = folder_ + "/plans.csv";
  EXPECT_EQ(text, plans +
                      ":2:1: error: this line has 1 field, not a key and a plan\n"
                      "      = a comma inside a field needs quotes around the field\n" +
                      plans +
                      ":3:1: error: this line has 3 fields, not a key and a plan\n"
                      "      = a comma inside a field needs quotes around the field\n" +
                      plans + ":4:1: error: this key has a plan already, in line 1\n" + plans +
                      ":5:1: error: this line has no key\n" + plans +
                      ":6:1: error: this line has no plan\n" + plans +
                      ":7:1: error: the quotes of this line are out of order\n"
                      "      = write \"\" for a quote\n"
                      "6 errors in 1 file\n");
  EXPECT_EQ(text.find("secret"), std::string::npos);
}

TEST_F(LoadFilesTest, WarnsAboutAPlanThatNobodyHas) {
  Write("k-1,gold\n");
  EXPECT_EQ(LoadText("f", kWithPlans, folder_, 1).diagnostics.Text(),
            "f:8:7: warning: unknown plan `pro` (nobody has it)\n"
            "    8 |       pro: { limit: 1000/min, burst: 200 }\n"
            "      |       ^\n"
            "1 warning in 1 file\n");
}

TEST_F(LoadFilesTest, WarnsAboutAPlanInTheFileThatIsNearlyOneOfARule) {
  Write("k-1,pro\nk-2,pr0\nk-3,free\nk-4,internal\n");
  EXPECT_EQ(LoadText("f", kWithPlans, folder_, 1).diagnostics.Text(),
            folder_ +
                "/plans.csv:2:1: warning: no rule has numbers for the plan `pr0`\n"
                "      = did you mean `pro`?\n"
                "1 warning in 1 file\n");
}

TEST_F(LoadFilesTest, AFirstLineThatNamesItsColumnsIsAHeading) {
  Write("api_key,plan\nk-1,pro\n");
  const Config config = Good(kWithPlans, folder_);
  ASSERT_NE(config.rules, nullptr);
  EXPECT_EQ(config.rules->options().plans.size(), 1u);
  EXPECT_EQ(config.rules->options().plans.PlanOf("api_key"), "free");
}

TEST_F(LoadFilesTest, AMissingPlanFileIsAnErrorWhereItIsNamed) {
  const std::string text = LoadText("f", kWithPlans, folder_, 1).diagnostics.Text();
  EXPECT_TRUE(text.starts_with("f:2:16: error: `")) << text;
  EXPECT_NE(text.find("cannot be read: No such file or directory\n"), std::string::npos) << text;
}

// Kubernetes mounts a ConfigMap as `sluice.yaml -> ..data/sluice.yaml`, `..data -> ..1/`, and
// changes it by pointing `..data` elsewhere. What stands beside the file is no second file.
TEST_F(LoadFilesTest, AConfigMapIsOneFileAndItsSwapIsSeen) {
  const auto rules = [](int count) {
    std::string text = "rules:\n";
    for (int i = 0; i < count; ++i) {
      text += "  - { name: r" + std::to_string(i) + ", key: ip, limit: 1/s }\n";
    }
    return text;
  };
  namespace fs = std::filesystem;
  for (const auto* name : {"/..1", "/..2", "/..3"}) fs::create_directory(folder_ + name);
  WriteFile("..1/sluice.yaml", rules(1));
  WriteFile("..2/sluice.yaml", rules(2));
  WriteFile("..3/sluice.yaml", "rules:\n  - { name: x, key: ip, limit: 1/");
  fs::create_symlink("..1", folder_ + "/..data");
  fs::create_symlink("..data/sluice.yaml", folder_ + "/sluice.yaml");
  const auto swap_to = [&](const char* target) {
    fs::create_symlink(target, folder_ + "/..new");
    fs::rename(folder_ + "/..new", folder_ + "/..data");
  };
  const std::string path = folder_ + "/sluice.yaml";

  EXPECT_EQ(Load(path, 1).config.value().rules->rules().size(), 1u);
  swap_to("..2");
  EXPECT_EQ(Load(path, 2).config.value().rules->rules().size(), 2u);
  swap_to("..3");
  const LoadResult broken = Load(path, 3);
  EXPECT_FALSE(broken.config.has_value());
  EXPECT_EQ(broken.diagnostics.errors(), 1u);
}

TEST_F(LoadFilesTest, AFileThatCanNotBeReadIsOneError) {
  const LoadResult result = Load(folder_ + "/sluice.yaml", 1);
  EXPECT_FALSE(result.config.has_value());
  EXPECT_EQ(result.diagnostics.Text(),
            folder_ +
                "/sluice.yaml: error: cannot be read: No such file or directory\n"
                "1 error in 1 file\n");
  WriteFile("sluice.yaml", std::string((1 << 20) + 1, ' '));
  EXPECT_EQ(Load(folder_ + "/sluice.yaml", 1).diagnostics.Text(),
            folder_ +
                "/sluice.yaml: error: cannot be read: it has more than 1048576 bytes\n"
                "1 error in 1 file\n");
}

}  // namespace
}  // namespace sluice::config
