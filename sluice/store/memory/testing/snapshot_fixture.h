// What the tests of the snapshot share: stores with a file between them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/store/memory/memory_store.h"

namespace sluice {

struct NamedLimit {
  std::string name;
  Limit limit;
};

// One of each way in which a state can be kept, of `units` in a minute (a day for the calendar).
[[nodiscard]] std::vector<NamedLimit> EveryLimit(std::int64_t units);

// The limit in `made`, which must be one.
template <typename L>
[[nodiscard]] Limit Must(absl::StatusOr<L> made) {
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? Limit{*std::move(made)} : Limit{};
}

// One request with one claim; a binding one, or a look.
Claim Ask(MemoryStore& store, std::string_view key, const Limit& limit, std::uint64_t cost, Now now,
          ClaimKind kind = ClaimKind::kBinding);

// What all stores here hash with: always the same, so that a test that depends on where keys lie
// does so in every run alike.
[[nodiscard]] HashKey KeyOfTests();

class SnapshotTest : public testing::Test {
 protected:
  SnapshotTest();
  ~SnapshotTest() override;

  // A store that begins with the file at path(), if there is one.
  [[nodiscard]] absl::StatusOr<std::unique_ptr<MemoryStore>> TryOpen(
      Now now, std::uint64_t max_keys = 1000, std::uint64_t outside_bytes = 1 << 20) const;
  [[nodiscard]] std::unique_ptr<MemoryStore> Open(Now now, std::uint64_t max_keys = 1000,
                                                  std::uint64_t outside_bytes = 1 << 20) const;
  void Write(MemoryStore& store, Now now, Duration min_lifetime = {}) const;

  [[nodiscard]] std::string path() const { return (folder_ / "state").string(); }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

}  // namespace sluice
