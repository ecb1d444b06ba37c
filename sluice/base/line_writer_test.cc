#include "sluice/base/line_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include "sluice/base/log.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LineWriterTest : public ::testing::Test {
 protected:
  LineWriterTest() {
    std::string pattern = ::testing::TempDir() + "lines.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/lines.log";
    log::SetSink([this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      told_.emplace_back(line);
    });
  }
  ~LineWriterTest() override {
    writer_.reset();
    log::SetSink(nullptr);
    std::filesystem::remove_all(folder_);
  }

  void Open(std::size_t rings = 1, std::size_t ring_bytes = 1 << 16) {
    auto writer = LineWriter::Open({.path = path_, .rings = rings, .ring_bytes = ring_bytes});
    ASSERT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
  }
  static std::string Content(const std::string& path) {
    const std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  static void Until(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end) return ADD_FAILURE() << "it never came about";
      std::this_thread::yield();
    }
  }
  std::vector<std::string> told() {
    const std::lock_guard lock(mutex_);
    return told_;
  }

  std::string folder_;
  std::string path_;
  std::mutex mutex_;
  std::vector<std::string> told_;
  std::unique_ptr<LineWriter> writer_;
};

TEST_F(LineWriterTest, WritesWhatIsAddedAndTheRestAtTheEnd) {
  Open();
  writer_->Add(0, "one\n");
  Until([&] { return Content(path_) == "one\n"; });
  writer_->Add(0, "two\n");
  writer_.reset();
  EXPECT_EQ(Content(path_), "one\ntwo\n");
  Open();  // appends
  writer_->Add(0, "three\n");
  writer_.reset();
  EXPECT_EQ(Content(path_), "one\ntwo\nthree\n");
}

TEST_F(LineWriterTest, LinesOfSeveralThreadsAreNeitherCutNorMixedNorLostUncounted) {
  constexpr std::size_t kThreads = 4;
  constexpr int kLines = 20'000;
  Open(kThreads, /*ring_bytes=*/4096);
  std::vector<std::thread> threads;
  for (std::size_t ring = 0; ring < kThreads; ++ring) {
    threads.emplace_back([this, ring] {
      for (int i = 0; i < kLines; ++i) {
        writer_->Add(ring, std::to_string(ring) + ":" + std::to_string(i) + ":" +
                               std::string(static_cast<std::size_t>(i % 50), 'x') + "\n");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::uint64_t dropped = writer_->dropped();
  writer_.reset();
  std::ifstream file(path_);
  std::vector<int> last(kThreads, -1);
  std::uint64_t written = 0;
  for (std::string line; std::getline(file, line); ++written) {
    const std::size_t ring = line[0] - '0';
    const int number = std::stoi(line.substr(2));
    ASSERT_LT(ring, kThreads);
    ASSERT_GT(number, last[ring]);
    last[ring] = number;
    ASSERT_EQ(line, std::to_string(ring) + ":" + std::to_string(number) + ":" +
                        std::string(static_cast<std::size_t>(number % 50), 'x'));
  }
  EXPECT_EQ(written + dropped, kThreads * kLines);
}

TEST_F(LineWriterTest, ALineThatFitsNoRingIsDropped) {
  Open(1, 1024);
  writer_->Add(0, std::string(1024, 'x') + "\n");
  EXPECT_EQ(writer_->dropped(), 1U);
  writer_->Add(0, std::string(1023, 'y') + "\n");
  writer_.reset();
  EXPECT_EQ(Content(path_), std::string(1023, 'y') + "\n");
}

TEST_F(LineWriterTest, AFileThatWasRotatedOrDeletedIsOpenedAnew) {
  Open();
  writer_->Add(0, "one\n");
  Until([&] { return Content(path_) == "one\n"; });
  std::filesystem::rename(path_, path_ + ".1");
  writer_->Add(0, "still there\n");
  Until([&] { return Content(path_ + ".1") == "one\nstill there\n"; });
  writer_->Add(0, "the last\n");
  writer_->Reopen();
  Until([&] { return std::filesystem::exists(path_); });
  EXPECT_EQ(Content(path_ + ".1"), "one\nstill there\nthe last\n");
  writer_->Add(0, "two\n");
  Until([&] { return Content(path_) == "two\n"; });
  std::filesystem::remove(path_);
  Until([&] { return std::filesystem::exists(path_); });  // without being asked
  writer_->Add(0, "three\n");
  writer_.reset();
  EXPECT_EQ(Content(path_), "three\n");
}

TEST_F(LineWriterTest, AFolderThatIsNotThereIsToldAtTheStartAndNotFatalLater) {
  const auto writer = LineWriter::Open({.path = folder_ + "/none/lines.log"});
  EXPECT_EQ(writer.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(writer.status().message(), HasSubstr("none/lines.log: No such file"));

  path_ = folder_ + "/there/lines.log";
  std::filesystem::create_directory(folder_ + "/there");
  Open();
  std::filesystem::rename(folder_ + "/there", folder_ + "/moved");
  writer_->Reopen();
  Until([&] { return writer_->failures() == 1; });
  writer_->Add(0, "one\n");
  Until([&] { return Content(folder_ + "/moved/lines.log") == "one\n"; });
  std::filesystem::create_directory(folder_ + "/there");
  Until([&] { return std::filesystem::exists(path_); });
  writer_->Add(0, "two\n");
  writer_.reset();
  EXPECT_EQ(Content(path_), "two\n");
  ASSERT_EQ(told().size(), 2U);  // once each
  EXPECT_THAT(told()[0], HasSubstr("cannot open the file anew"));
  EXPECT_THAT(told()[1], HasSubstr("written again"));
}

// A bound on the size of files stands in for a disk that is full: a part of a line is taken, and
// then nothing more.
TEST_F(LineWriterTest, AFullDiskIsToldOnceAndWritingGoesOnWithinTheLine) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 6;
  Open();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  writer_->Add(0, "one\n");
  writer_->Add(0, "second\n");
  Until([&] { return writer_->failures() == 1; });
  EXPECT_EQ(Content(path_), "one\nse");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  Until([&] { return Content(path_) == "one\nsecond\n"; });
  Until([&] { return told().size() == 2; });
  EXPECT_THAT(told(),
              ElementsAre(HasSubstr("lines cannot be written"), HasSubstr("written again")));
}

TEST_F(LineWriterTest, APipeThatNobodyReadsHoldsNothingUp) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  Open(1, 1 << 20);
  for (int i = 0; i < 10'000; ++i) writer_->Add(0, std::string(199, 'x') + "\n");
  Until([&] { return writer_->dropped() > 0; });
  EXPECT_EQ(writer_->failures(), 0U);
  ::close(reader);  // an error, and no signal
  Until([&] { return writer_->failures() == 1; });
  writer_.reset();
}

TEST_F(LineWriterTest, WhatIsLostAtTheEndIsTold) {
  auto writer = LineWriter::Open({.path = "/dev/full", .last_words = Duration{0}});
  ASSERT_TRUE(writer.ok()) << writer.status();
  (*writer)->Add(0, "one\n");
  (*writer)->Add(0, "two\n");
  writer->reset();
  const std::lock_guard lock(mutex_);
  ASSERT_FALSE(told_.empty());
  EXPECT_THAT(told_.back(), AllOf(HasSubstr("lines are lost"), HasSubstr("lines=2")));
}

}  // namespace
}  // namespace sluice
