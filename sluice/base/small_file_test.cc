#include "sluice/base/small_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace sluice {
namespace {

class SmallFileTest : public testing::Test {
 protected:
  SmallFileTest() : folder_(testing::TempDir() + "sluice_small_XXXXXX") {
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  ~SmallFileTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
    return folder_ + "/" + name;
  }

  std::string folder_;
};

TEST_F(SmallFileTest, ReadsAllOfItUpToTheBound) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{40'000}}) {
    std::string bytes(size, 'x');
    if (size > 0) bytes.back() = '\0';
    const std::string path = Write("file", bytes);
    const auto read = ReadSmallFile(path, size);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, bytes);
    if (size == 0) continue;
    EXPECT_FALSE(ReadSmallFile(path, size - 1).ok());
  }
}

TEST_F(SmallFileTest, SaysWhyItCannot) {
  const std::string file = Write("file", "text");
  const struct {
    std::string path;
    absl::StatusCode code;
    std::string why;
  } rows[] = {
      {folder_ + "/none", absl::StatusCode::kNotFound, "No such file or directory"},
      {file + "/below", absl::StatusCode::kNotFound, "Not a directory"},
      {folder_, absl::StatusCode::kInvalidArgument, "it is a folder"},
      {file, absl::StatusCode::kInvalidArgument, "it has more than 3 bytes"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(ReadSmallFile(row.path, 3).status(), absl::Status(row.code, row.why)) << row.path;
  }
}

}  // namespace
}  // namespace sluice
