// A snapshot file of any kind: refused with a reason, or taken over; and then, whatever is in the
// states, every key can be asked about, and makes room for others.
//
// The first byte says how the rest is meant: 0, the whole file; else, what is in it, around which
// come the right first bytes and checks. Without that hardly any input would get past them.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "sluice/store/memory/internal/snapshot_file.h"
#include "sluice/store/memory/memory_store.h"

namespace {

using sluice::Claim;
using sluice::ClaimGroup;
using sluice::ClaimKind;
using sluice::Limit;
using sluice::MemoryStore;
using sluice::Now;
using std::chrono::hours;
using std::chrono::minutes;

std::string Framed(std::string_view content) {
  std::string file = sluice::memory::SnapshotPreamble();
  std::uint64_t block = 0;
  while (!content.empty()) {
    const std::string_view part = content.substr(0, sluice::memory::kMaxSnapshotBlock);
    sluice::memory::AppendSnapshotBlock(block++, part, file);
    content.remove_prefix(part.size());
  }
  sluice::memory::AppendSnapshotBlock(block, {}, file);
  return file;
}

// A file in memory, and the name under which it can be opened.
std::string PathOf(std::string_view bytes) {
  static const int file = memfd_create("snapshot", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, 0) != 0) std::abort();
  if (pwrite(file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  return "/proc/self/fd/" + std::to_string(file);
}

void Ask(MemoryStore& store, const Limit& limit, std::string_view key, Now now) {
  const absl::StatusOr<sluice::LimitId> id = store.Register(limit);
  if (!id.ok()) return;
  for (const ClaimKind kind : {ClaimKind::kLook, ClaimKind::kBinding, ClaimKind::kSoft}) {
    Claim claim{.key = store.hash_key()(key), .limit = &limit, .limit_id = *id, .kind = kind};
    ClaimGroup group{.claims = {&claim, 1}};
    store.Apply({&group, 1}, now);
    if (claim.decision.remaining > sluice::CapacityOf(limit)) std::abort();
    store.Undo(claim, claim.receipt.units, now);
  }
  store.Release(*id, now);
}

void AskAbout(MemoryStore& store, Now now) {
  const Limit limits[] = {
      *sluice::token_bucket::MakeLimit({10, minutes{1}}, 10),
      *sluice::leaky_bucket::MakeLimit({10, minutes{1}}, 9, minutes{1}),
      *sluice::fixed_window::MakeLimit(10, minutes{1}),
      *sluice::fixed_window::MakeLimit(10, minutes{1}, sluice::fixed_window::Align::kFirstHit),
      *sluice::sliding_window_counter::MakeLimit(10, minutes{1}),
      *sluice::sliding_window_counter::MakeLimit(std::int64_t{1} << 40, minutes{1}),
      *sluice::calendar::MakeLimit(10, sluice::calendar::Period::kDay, "UTC"),
      *sluice::sliding_window_strict::MakeLimit(10, minutes{1}, 4),
      *sluice::sliding_window_log::MakeLimit(10, minutes{1}, false),
      *sluice::sliding_window_log::MakeLimit(10, minutes{1}, true),
  };
  for (std::size_t i = 0; i < std::size(limits); ++i) {
    const std::string key = "key " + std::to_string(i);
    Ask(store, limits[i], key, now);
    // Then under another one, by which the state is converted.
    Ask(store, limits[(i + 3) % std::size(limits)], key, now);
  }
  for (int i = 0; i < 100; ++i) {
    Ask(store, limits[static_cast<std::size_t>(i) % std::size(limits)], "new " + std::to_string(i),
        now);
  }
  const sluice::MemoryStats stats = store.Stats(now);
  if (stats.table_slots_occupied > stats.table_slots) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(bytes + 1), size - 1);
  sluice::MemoryStoreOptions options;
  options.max_keys = 64;
  options.outside_bytes = std::uint64_t{8} << 10;
  options.snapshot = PathOf(bytes[0] == 0 ? std::string(rest) : Framed(rest));
  const Now now{sluice::Time{hours{5}}, sluice::WallTime{hours{472'000}}};
  const absl::StatusOr<std::unique_ptr<MemoryStore>> store = MemoryStore::Open(options, now);
  if (store.ok()) {
    AskAbout(**store, now);
    AskAbout(**store, {now.steady + minutes{1}, now.wall + minutes{1}});
    return 0;
  }
  switch (store.status().code()) {
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kInvalidArgument:
      break;
    default:
      std::abort();
  }
  if (store.status().message().find(options.snapshot) == std::string::npos) std::abort();
  return 0;
}
