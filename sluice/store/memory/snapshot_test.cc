// What a store owes, over a restart: the same decisions, as if there had been none.

#include "sluice/store/memory/snapshot_fixture.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Monday 2023-11-13, 12:00:10 UTC.
constexpr WallTime kWall{seconds{1'699'876'810}};
constexpr Now kBefore{Time{hours{5}}, kWall};

Now After(Now now, Duration by) { return {now.steady + by, now.wall + by}; }

std::string Told(const Decision& decision) {
  std::string text = std::to_string(static_cast<int>(decision.verdict));
  for (const std::int64_t number :
       {static_cast<std::int64_t>(decision.remaining), std::int64_t{decision.retry_after.count()},
        std::int64_t{decision.reset_after.count()}, std::int64_t{decision.delay.count()}}) {
    text += " " + std::to_string(number);
  }
  return text;
}

// The restart takes five seconds by the wall clock, and the new process's steady clock begins
// elsewhere. Where steps of that clock are counted (strict) it is moved by whole ones.
TEST_F(SnapshotTest, DecidesAfterARestartAsIfThereHadBeenNone) {
  constexpr Duration kRestart = seconds{5};
  for (const Duration moved : {Duration{-hours{5} + seconds{7}}, Duration{hours{9'000}}}) {
    for (const NamedLimit& named : EveryLimit(10)) {
      SCOPED_TRACE(named.name);
      std::filesystem::remove(path());
      const auto old_store = Open(kBefore);
      Now now = kBefore;
      for (const std::uint64_t cost : {3, 4, 2}) {
        Ask(*old_store, "ann", named.limit, cost, now);
        now = After(now, milliseconds{900});
      }
      const std::uint64_t charged_all = CapacityOf(named.limit);
      Ask(*old_store, "large", named.limit, charged_all, now);
      Write(*old_store, now);

      const auto new_now = [moved](Now old) { return Now{old.steady + moved, old.wall}; };
      now = After(now, kRestart);
      const auto new_store = Open(new_now(now));
      for (int i = 0; i < 40; ++i) {
        for (const char* key : {"ann", "large", "new"}) {
          SCOPED_TRACE(std::string(key) + " " + std::to_string(i));
          const Claim old_claim = Ask(*old_store, key, named.limit, 1, now);
          const Claim new_claim = Ask(*new_store, key, named.limit, 1, new_now(now));
          ASSERT_EQ(Told(new_claim.decision), Told(old_claim.decision));
        }
        now = After(now, milliseconds{2'700});
      }
    }
  }
}

}  // namespace
}  // namespace sluice
