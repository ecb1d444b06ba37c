// Files that are damaged, foreign, from the future or cannot be written.

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "sluice/store/memory/internal/snapshot_bytes.h"
#include "sluice/store/memory/internal/snapshot_file.h"
#include "sluice/store/memory/internal/snapshot_limit.h"
#include "sluice/store/memory/testing/snapshot_fixture.h"

namespace sluice {
namespace {

using memory::PutI64;
using memory::PutU32;
using memory::PutU64;
using memory::PutU8;
using memory::PutVarint;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Now kNow{Time{hours{5}}, WallTime{hours{472'000}}};

const Limit kBucket = Must(token_bucket::MakeLimit({10, minutes{1}}, 10));

std::string BytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void WriteBytes(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

class SnapshotDamageTest : public SnapshotTest {
 protected:
  // A file with a state of each kind.
  std::string WholeFile() {
    std::filesystem::remove(path());
    const auto store = Open(kNow, 64);
    for (const NamedLimit& named : EveryLimit(10)) Ask(*store, named.name, named.limit, 2, kNow);
    Write(*store, kNow);
    return BytesOf(path());
  }
  // What Open() says about a file of these bytes.
  absl::Status Reading(std::string_view bytes) {
    WriteBytes(path(), bytes);
    return TryOpen(kNow, 64, 16 << 10).status();
  }
  void ExpectDataLoss(std::string_view bytes, std::string_view what) {
    const absl::Status status = Reading(bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_NE(status.message().find(path()), std::string::npos) << status;
    EXPECT_NE(status.message().find(absl::string_view(what.data(), what.size())), std::string::npos)
        << status << "\nand not: " << what;
  }
};

TEST_F(SnapshotDamageTest, AFileThatIsCutShortAnywhereIsNoSnapshot) {
  const auto store = Open(kNow, 64);
  Ask(*store, "ann", kBucket, 1, kNow);
  Write(*store, kNow);
  const std::string whole = BytesOf(path());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    ExpectDataLoss(whole.substr(0, size), "is cut short");
  }
  EXPECT_TRUE(Reading(whole).ok());
  ExpectDataLoss(whole + '\0', "goes on behind its end");
}

TEST_F(SnapshotDamageTest, EveryBitThatFlipsIsNoticed) {
  std::string bytes = WholeFile();
  const auto in_frame = [&](std::size_t at) { return at < 24 || at + 40 > bytes.size(); };
  for (std::size_t at = 0; at < bytes.size(); at += in_frame(at) ? 1 : 3) {
    // All bits of the file's own frame, else one of a byte, another one each time.
    const bool all = in_frame(at);
    for (std::size_t bit = all ? 0 : at % 8; bit < 8; bit += all ? 1 : 8) {
      SCOPED_TRACE(std::to_string(at) + ", bit " + std::to_string(bit));
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << bit);
      ExpectDataLoss(bytes, "");
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << bit);
    }
  }
}

TEST_F(SnapshotDamageTest, ForeignFilesAreToldFromDamagedOnes) {
  ExpectDataLoss("", "is cut short");
  ExpectDataLoss("\n", "is no snapshot of Sluice");
  ExpectDataLoss("rules:\n  - name: flood\n    key: ip\n    limit: 50/s\n",
                 "is no snapshot of Sluice");
  std::string bytes = WholeFile();
  bytes[9] ^= 1;  // of the version
  ExpectDataLoss(bytes, "damaged in its first bytes");
}

TEST_F(SnapshotDamageTest, ALaterFormatIsRefusedAndNamed) {
  const std::string whole = WholeFile();
  const std::string preamble = memory::SnapshotPreamble(7);
  const absl::Status status = Reading(preamble + whole.substr(preamble.size()));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("format 7"), std::string::npos) << status;
}

TEST_F(SnapshotDamageTest, WhatIsThereAndNoReadableFileIsAnError) {
  std::filesystem::create_directory(path());
  EXPECT_EQ(TryOpen(kNow).status().code(), absl::StatusCode::kDataLoss);
  std::filesystem::remove(path());
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(TryOpen(kNow).status().code(), absl::StatusCode::kDataLoss);
  std::filesystem::remove(path());
  std::filesystem::create_symlink(path(), path());  // to itself
  EXPECT_EQ(TryOpen(kNow).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(SnapshotDamageTest, TheFilesHashKeyIsTakenOverAndAnotherOneRefused) {
  WholeFile();
  MemoryStoreOptions options;
  options.max_keys = 64;
  options.snapshot = path();
  const absl::StatusOr<std::unique_ptr<MemoryStore>> store = MemoryStore::Open(options, kNow);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->hash_key()("ann"), KeyOfTests()("ann"));
  options.hash_key = HashKey(HashKind::kSipHash13, {});
  EXPECT_EQ(MemoryStore::Open(options, kNow).status().code(), absl::StatusCode::kInvalidArgument);
}

// Files whose checks are right and whose content is not, as only a bug can write them.
class SnapshotContent : public SnapshotDamageTest {
 protected:
  // With the hash key of KeyOfTests().
  static std::string Header(std::uint8_t kind = 2, std::uint64_t max_keys = 64,
                            std::uint64_t main_lines = 31, std::uint64_t stash_lines = 1) {
    std::string bytes;
    PutU8(bytes, kind);
    bytes.append(32, 'k');
    PutI64(bytes, kNow.wall.time_since_epoch().count());
    PutU64(bytes, max_keys);
    PutU64(bytes, main_lines);
    PutU64(bytes, stash_lines);
    return bytes;
  }
  static std::string LimitRecord(const Limit& limit, std::uint64_t number = 1) {
    std::string bytes;
    PutVarint(bytes, 1);
    PutVarint(bytes, number);
    memory::PutLimit(bytes, limit);
    return bytes;
  }
  static std::string Entry(std::uint64_t skip, std::uint64_t tag) {
    std::string bytes;
    PutVarint(bytes, 2 + skip);
    PutU64(bytes, tag);
    return bytes;
  }
  static std::string Number(std::uint64_t value) {
    std::string bytes;
    PutU64(bytes, value);
    return bytes;
  }
  static std::string Varint(std::uint64_t value) {
    std::string bytes;
    PutVarint(bytes, value);
    return bytes;
  }
  static std::string End(std::uint64_t entries) { return Varint(0) + Number(entries); }
  static std::string File(std::string_view content) {
    std::string bytes = memory::SnapshotPreamble();
    const std::uint64_t blocks = content.empty() ? 0 : 1;
    if (blocks > 0) memory::AppendSnapshotBlock(0, content, bytes);
    memory::AppendSnapshotBlock(blocks, {}, bytes);
    return bytes;
  }
};

constexpr std::uint64_t kTag = std::uint64_t{99} << 12 | 1;

TEST_F(SnapshotContent, GoodContentIsTakenOver) {
  const absl::Status status =
      Reading(File(Header() + LimitRecord(kBucket) + Entry(30, kTag) + Number(1'000'000) + End(1)));
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(SnapshotContent, ANumberMeansTheLimitThatWasLastSaidBeforeIt) {
  const Limit other = Must(token_bucket::MakeLimit({20, minutes{1}}, 20));
  const auto tag = [](const char* name) {
    return (KeyOfTests()(name).lo & ~std::uint64_t{0xfff}) | 1;
  };
  constexpr std::uint64_t kUnit = 6'000'000'000;  // of kBucket, in ns
  // A key's entry in every line: wherever it looks, it is there.
  std::string content = Header();
  for (int line = 0; line < 32; ++line) {
    content += LimitRecord(kBucket) + Entry(line > 0 ? 1 : 0, tag("ann")) + Number(2 * kUnit) +
               LimitRecord(other) + Entry(0, tag("bob")) + Number(2 * kUnit) + LimitRecord(other) +
               Entry(0, tag("cid")) + Number(kUnit / 2);
  }
  WriteBytes(path(), File(content + End(96)));
  const auto store = Open(kNow, 64);
  EXPECT_EQ(Ask(*store, "ann", kBucket, 0, kNow).decision.remaining, 8u);
  EXPECT_EQ(Ask(*store, "bob", other, 0, kNow).decision.remaining, 16u);
  EXPECT_EQ(Ask(*store, "cid", other, 0, kNow).decision.remaining, 19u);
  EXPECT_EQ(store->Stats(kNow).limits, 2u);
  EXPECT_EQ(store->Stats(kNow).conversions, 0u);
}

TEST_F(SnapshotContent, ImpossibleContentIsDataLossWhateverTheChecksSay) {
  const Limit log = Must(sliding_window_log::MakeLimit(10, minutes{1}, true));
  const Limit window = Must(fixed_window::MakeLimit(10, minutes{1}));
  std::string no_rate;
  PutVarint(no_rate, 1);
  PutVarint(no_rate, 1);
  PutU8(no_rate, 1);
  for (int i = 0; i < 3; ++i) PutI64(no_rate, 0);
  std::string other_ticks = LimitRecord(kBucket);
  other_ticks[other_ticks.size() - 9] = 5;  // the ticks of a nanosecond, before the interval
  std::string unknown_zone =
      LimitRecord(Must(calendar::MakeLimit(1, calendar::Period::kDay, "Europe/Berlin")));
  unknown_zone[unknown_zone.size() - 1] = 'x';
  const struct {
    std::string content;
    std::string_view what;
  } rows[] = {
      {"", "ends in the middle"},
      {Header(), "ends in the middle"},
      {Header(3), "hash of an unknown kind"},
      {Header(2, 64, 0, 1), "impossible size"},
      {Header(2, 64, 31, 0), "impossible size"},
      {Header(2, 64, 3, 30), "impossible size"},
      {Header(2, 64, 1, 1), "impossible size"},
      {Header(2, ~std::uint64_t{0}, ~std::uint64_t{0}, 1), "impossible size"},
      {Header() + End(1), "has 0 entries instead of 1"},
      {Header() + End(0) + "x", "goes on behind its last entry"},
      {Header() + LimitRecord(kBucket, 0), "impossible number, 0"},
      {Header() + LimitRecord(kBucket, 4'096), "impossible number, 4096"},
      {Header() + LimitRecord(kBucket).substr(0, 10), "ends in the middle"},
      {Header() + Varint(1) + Varint(1) + "\x08", "limit of an unknown algorithm"},
      {Header() + no_rate, "rate must be positive"},
      {Header() + other_ticks, "counts in other ticks"},
      {Header() + unknown_zone, "unknown time zone"},
      {Header() + Entry(0, kTag), "no key, or of no limit"},
      {Header() + LimitRecord(kBucket) + Entry(0, 1), "no key, or of no limit"},
      {Header() + LimitRecord(kBucket) + Entry(32, kTag), "behind the last line"},
      {Header() + LimitRecord(kBucket) + Varint(~std::uint64_t{0}), "behind the last line"},
      {Header() + LimitRecord(kBucket) + std::string(11, '\xff'), "number that is too long"},
      {Header() + LimitRecord(window) + Entry(0, kTag) + Number(std::uint64_t{1} << 63),
       "impossible state"},
      {Header() + LimitRecord(log) + Entry(0, kTag) + Number(0) + Varint(~std::uint64_t{0}),
       "ends in the middle"},
      {Header() + LimitRecord(log) + Entry(0, kTag) + Number(0) + Varint(1) + Number(0),
       "impossible log"},
      {Header() + LimitRecord(log) + Entry(0, kTag) + Number(0) + Varint(1) +
           Number(~std::uint64_t{0}),
       "impossible log"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    ExpectDataLoss(File(row.content), row.what);
  }
}

TEST_F(SnapshotContent, BlocksInAnotherOrderOrMissingAreNoticed) {
  const std::string first = Header() + LimitRecord(kBucket);
  const std::string second = Entry(0, kTag) + Number(1'000'000) + End(1);
  const auto file = [](std::initializer_list<std::pair<std::uint64_t, std::string>> blocks) {
    std::string bytes = memory::SnapshotPreamble();
    for (const auto& [number, content] : blocks) {
      memory::AppendSnapshotBlock(number, content, bytes);
    }
    return bytes;
  };
  EXPECT_TRUE(Reading(file({{0, first}, {1, second}, {2, ""}})).ok());
  ExpectDataLoss(file({{1, first}, {0, second}, {2, ""}}), "check does not match");
  ExpectDataLoss(file({{0, first}, {0, first}, {1, second}, {2, ""}}), "check does not match");
  ExpectDataLoss(file({{0, first}, {2, ""}}), "check does not match");
  ExpectDataLoss(file({{0, first}, {1, second}}), "is cut short");
}

TEST_F(SnapshotContent, ABlockThatIsTooLargeIsNotRead) {
  std::string bytes = memory::SnapshotPreamble();
  PutU32(bytes, 0xffff'ffff);
  ExpectDataLoss(bytes, "a size of 4294967295");
}

// Whatever numbers a state has, its key can be asked about.
TEST_F(SnapshotContent, StatesFromTheEndsOfTimeDenyOrAllowAndHarmNobody) {
  for (const NamedLimit& named : EveryLimit(10)) {
    for (const std::uint64_t number : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{1} << 62,
                                       ~std::uint64_t{0} >> 1, (std::uint64_t{1} << 63) + 1}) {
      SCOPED_TRACE(named.name + " " + std::to_string(number));
      std::string state;
      if (std::holds_alternative<sliding_window_log::Limit>(named.limit)) {
        const bool weighted = std::get<sliding_window_log::Limit>(named.limit).weighted;
        state = Number(number) + Varint(1) +
                (weighted ? std::string("\0\0\0\0\x05\0\0\0", 8) : std::string(4, '\0'));
      } else if (std::holds_alternative<sliding_window_strict::Limit>(named.limit)) {
        state = Number(number);
        for (int i = 0; i <= 60; ++i) state += Varint(number);
      } else if (named.name == "calendar" || named.name == "sliding counter, large") {
        state = Number(number) + Number(number) + Number(number);
      } else if (named.name == "fixed window, large" || named.name == "fixed window, first hit") {
        state = Number(number) + Number(number);
      } else {
        state = Number(number);
      }
      std::string content = Header() + LimitRecord(named.limit);
      std::uint64_t entries = 0;
      for (int line = 0; line < 32; ++line, ++entries) {
        content +=
            Entry(line > 0 ? 1 : 0, (KeyOfTests()("ann").lo & ~std::uint64_t{0xfff}) | 1) + state;
      }
      WriteBytes(path(), File(content + End(entries)));
      const auto store = Open(kNow, 64, 64 << 10);
      for (const Duration passed : {Duration{0}, Duration{minutes{2}}}) {
        const Now now{kNow.steady + passed, kNow.wall + passed};
        for (const ClaimKind kind : {ClaimKind::kLook, ClaimKind::kBinding, ClaimKind::kSoft}) {
          const Claim claim = Ask(*store, "ann", named.limit, 1, now, kind);
          EXPECT_LE(claim.decision.remaining, CapacityOf(named.limit));
        }
      }
    }
  }
}

TEST_F(SnapshotTest, TheFileIsForItsOwnerAlone) {
  const auto store = Open(kNow);
  const auto mode = [this] {
    struct stat about {};
    EXPECT_EQ(stat(path().c_str(), &about), 0);
    return about.st_mode & 0777;
  };
  const mode_t before = umask(0);
  Write(*store, kNow);
  EXPECT_EQ(mode(), 0600u);
  // What a crash left behind beside it had another mode, and more bytes.
  WriteBytes(path() + ".tmp", std::string(100'000, 'x'));
  ASSERT_EQ(chmod((path() + ".tmp").c_str(), 0666), 0);
  Write(*store, kNow);
  umask(before);
  EXPECT_EQ(mode(), 0600u);
  EXPECT_TRUE(TryOpen(kNow).ok());
}

TEST_F(SnapshotTest, WhenWritingFailsTheOldFileStays) {
  const auto store = Open(kNow, 20'000);
  Ask(*store, "ann", kBucket, 3, kNow);
  Write(*store, kNow);
  const std::string old_bytes = BytesOf(path());
  for (int i = 0; i < 20'000; ++i) Ask(*store, std::to_string(i), kBucket, 1, kNow);

  // A name beside it that cannot be written.
  std::filesystem::create_directory(path() + ".tmp");
  absl::Status status = store->WriteSnapshot(path(), kNow);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find(path()), std::string::npos) << status;
  EXPECT_EQ(BytesOf(path()), old_bytes);
  std::filesystem::remove(path() + ".tmp");

  // A disk that is full after the first part.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 10'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  status = store->WriteSnapshot(path(), kNow);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(BytesOf(path()), old_bytes);
  EXPECT_FALSE(std::filesystem::exists(path() + ".tmp"));

  Write(*store, kNow);
  EXPECT_NE(BytesOf(path()), old_bytes);
}

TEST_F(SnapshotTest, AFolderThatIsNotThereIsToldAndNotMade) {
  const auto store = Open(kNow);
  const std::string missing = (folder() / "missing" / "state").string();
  const absl::Status status = store->WriteSnapshot(missing, kNow);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find(missing), std::string::npos) << status;
  EXPECT_FALSE(std::filesystem::exists(folder() / "missing"));
}

// Large enough for many blocks, with entries over their edges.
TEST_F(SnapshotTest, AFileOfManyBlocksIsReadAsItWasWritten) {
  const auto store = Open(kNow, 60'000);
  for (int i = 0; i < 60'000; ++i) {
    Ask(*store, std::to_string(i), kBucket, 1 + static_cast<std::uint64_t>(i) % 9, kNow);
  }
  Write(*store, kNow);
  EXPECT_GT(std::filesystem::file_size(path()), 3 * memory::kMaxSnapshotBlock);
  const auto restored = Open(kNow, 60'000);
  for (int i = 0; i < 60'000; i += 7) {
    ASSERT_EQ(Ask(*restored, std::to_string(i), kBucket, 0, kNow).decision.remaining,
              Ask(*store, std::to_string(i), kBucket, 0, kNow).decision.remaining);
  }
}

}  // namespace
}  // namespace sluice
