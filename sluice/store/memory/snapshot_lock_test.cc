#include "sluice/store/memory/snapshot_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

class SnapshotLockTest : public ::testing::Test {
 protected:
  SnapshotLockTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-lock-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~SnapshotLockTest() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return (folder_ / "counters.snapshot").string(); }

  std::filesystem::path folder_;
};

TEST_F(SnapshotLockTest, ASnapshotHasOneOwnerAtATime) {
  const auto first = SnapshotLock::Take(path());
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = SnapshotLock::Take(path());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(second.status().message(),
            absl::StrCat("snapshot ", path(), " is in use by process ", getpid()));
}

TEST_F(SnapshotLockTest, ALockThatWasGivenBackCanBeTaken) {
  {
    const auto first = SnapshotLock::Take(path());
    ASSERT_TRUE(first.ok());
  }
  EXPECT_TRUE(SnapshotLock::Take(path()).ok());
}

TEST_F(SnapshotLockTest, AMovedLockStaysTaken) {
  auto first = SnapshotLock::Take(path());
  ASSERT_TRUE(first.ok());
  std::optional<SnapshotLock> kept(*std::move(first));
  EXPECT_FALSE(SnapshotLock::Take(path()).ok());
  kept.reset();
  EXPECT_TRUE(SnapshotLock::Take(path()).ok());
}

TEST_F(SnapshotLockTest, AFolderThatIsNotThereIsToldAtOnce) {
  const std::string path = (folder_ / "missing" / "counters.snapshot").string();
  const auto lock = SnapshotLock::Take(path);
  EXPECT_EQ(lock.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(lock.status().message(), absl::StrCat("cannot keep a snapshot at ", path, ": ", path,
                                                  ".lock: No such file or directory"));
}

TEST_F(SnapshotLockTest, ALinkInItsPlaceIsNotFollowed) {
  std::filesystem::create_symlink(folder_ / "elsewhere", path() + ".lock");
  EXPECT_FALSE(SnapshotLock::Take(path()).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "elsewhere"));
}

}  // namespace
}  // namespace sluice
