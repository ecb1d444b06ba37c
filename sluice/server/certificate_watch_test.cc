#include "sluice/server/certificate_watch.h"

#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT: mkdtemp

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace sluice {
namespace {

namespace fs = std::filesystem;
using Event = CertificateWatch::Event;

// A certificate and its key are two files that say the same here.
class CertificateWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "sluice_watch_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void Write(const std::string& name, std::string_view text) const {
    fs::create_directories(fs::path(Path(name)).parent_path());
    std::ofstream(Path(name), std::ios::binary) << text;
  }
  void WriteBoth(std::string_view text) const {
    Write("site.pem", text);
    Write("site.key", text);
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Points the symlink `name` elsewhere, at one instant.
  void PointTo(const std::string& name, const std::string& target) const {
    fs::create_symlink(target, Path("new"));
    fs::rename(Path("new"), Path(name));
  }

  CertificateWatch Watch() const { return CertificateWatch({Path("site.pem"), Path("site.key")}); }
  Event Look(CertificateWatch& watch) {
    const CertificateWatch::Seen seen = watch.Look([this] {
      ++loads_;
      const std::string certificate = Read(Path("site.pem"));
      if (certificate.empty() || certificate != Read(Path("site.key"))) {
        return absl::InvalidArgumentError("they do not fit");
      }
      in_force_ = certificate;
      return absl::OkStatus();
    });
    EXPECT_EQ(seen.why.ok(), seen.event != Event::kBroken);
    return seen.event;
  }

  fs::path folder_;
  int loads_ = 0;
  std::string in_force_ = "one";
};

TEST_F(CertificateWatchTest, FilesThatStayAreNotLoadedAgain) {
  WriteBoth("one");
  CertificateWatch watch = Watch();
  EXPECT_EQ(Look(watch), Event::kNothing);
  WriteBoth("one");  // written anew, and still the same
  EXPECT_EQ(Look(watch), Event::kNothing);
  EXPECT_EQ(loads_, 0);
}

TEST_F(CertificateWatchTest, SeesFilesThatAreWrittenOver) {
  WriteBoth("one");
  CertificateWatch watch = Watch();
  WriteBoth("two");  // as long as before, and perhaps at the same instant
  EXPECT_EQ(Look(watch), Event::kReplaced);
  EXPECT_EQ(in_force_, "two");
  EXPECT_EQ(Look(watch), Event::kNothing);
  EXPECT_EQ(loads_, 1);
}

TEST_F(CertificateWatchTest, SeesFilesThatAreRenamed) {
  WriteBoth("one");
  CertificateWatch watch = Watch();
  for (const auto* name : {"site.pem", "site.key"}) {
    Write("new", "two");
    fs::rename(Path("new"), Path(name));
  }
  EXPECT_EQ(Look(watch), Event::kReplaced);
  EXPECT_EQ(in_force_, "two");
}

// Let's Encrypt: live/site.pem -> ../archive/site1.pem.
TEST_F(CertificateWatchTest, SeesASymlinkThatPointsElsewhere) {
  for (const auto* text : {"one", "two"}) {
    Write(std::string("archive/") + text + ".pem", text);
    Write(std::string("archive/") + text + ".key", text);
  }
  fs::create_symlink("archive/one.pem", Path("site.pem"));
  fs::create_symlink("archive/one.key", Path("site.key"));
  CertificateWatch watch = Watch();
  PointTo("site.pem", "archive/two.pem");
  EXPECT_EQ(Look(watch), Event::kNothing);  // half way
  PointTo("site.key", "archive/two.key");
  EXPECT_EQ(Look(watch), Event::kReplaced);
  EXPECT_EQ(in_force_, "two");
}

// A Kubernetes Secret: site.pem -> ..data/site.pem, ..data -> ..1.
TEST_F(CertificateWatchTest, SeesAFolderThatASymlinkExchanges) {
  for (const auto* folder : {"..1", "..2"}) {
    const std::string text = std::string(folder) == "..1" ? "one" : "two";
    Write(std::string(folder) + "/site.pem", text);
    Write(std::string(folder) + "/site.key", text);
  }
  fs::create_symlink("..1", Path("..data"));
  fs::create_symlink("..data/site.pem", Path("site.pem"));
  fs::create_symlink("..data/site.key", Path("site.key"));
  CertificateWatch watch = Watch();
  PointTo("..data", "..2");
  fs::remove_all(Path("..1"));
  EXPECT_EQ(Look(watch), Event::kReplaced);
  EXPECT_EQ(in_force_, "two");
}

TEST_F(CertificateWatchTest, WaitsUntilCertificateAndKeyFit) {
  WriteBoth("one");
  CertificateWatch watch = Watch();
  Write("site.pem", "two");
  for (int i = 1; i < CertificateWatch::kPatience; ++i) EXPECT_EQ(Look(watch), Event::kNothing);
  fs::remove(Path("site.key"));  // a change: patience begins anew
  for (int i = 1; i < CertificateWatch::kPatience; ++i) EXPECT_EQ(Look(watch), Event::kNothing);
  EXPECT_EQ(in_force_, "one");
  Write("site.key", "two");
  EXPECT_EQ(Look(watch), Event::kReplaced);
  EXPECT_EQ(in_force_, "two");
}

TEST_F(CertificateWatchTest, TellsOnceOfWhatStaysBroken) {
  WriteBoth("one");
  CertificateWatch watch = Watch();
  for (const auto* text : {"broken", "broken again"}) {
    Write("site.key", text);
    int told = 0;
    for (int i = 0; i < 3 * CertificateWatch::kPatience; ++i) {
      if (Look(watch) == Event::kBroken) ++told;
    }
    EXPECT_EQ(told, 1);
  }
  EXPECT_EQ(loads_, 2 * CertificateWatch::kPatience);
  EXPECT_EQ(in_force_, "one");
  Write("site.pem", "broken again");
  EXPECT_EQ(Look(watch), Event::kReplaced);
}

TEST_F(CertificateWatchTest, GoingBackToWhatIsInForceIsNoChange) {
  WriteBoth("one");
  CertificateWatch watch = Watch();
  Write("site.key", "broken");
  EXPECT_EQ(Look(watch), Event::kNothing);
  Write("site.key", "one");
  EXPECT_EQ(Look(watch), Event::kNothing);
  EXPECT_EQ(loads_, 1);
  // What was broken before is given its time again.
  Write("site.key", "broken");
  for (int i = 1; i < CertificateWatch::kPatience; ++i) EXPECT_EQ(Look(watch), Event::kNothing);
  EXPECT_EQ(Look(watch), Event::kBroken);
}

TEST_F(CertificateWatchTest, SeesContentsThatMoveFromOneFileToTheOther) {
  Write("site.pem", "one");
  Write("site.key", "");
  CertificateWatch watch = Watch();
  Write("site.pem", "");
  Write("site.key", "one");
  (void)Look(watch);
  EXPECT_EQ(loads_, 1);
}

}  // namespace
}  // namespace sluice
