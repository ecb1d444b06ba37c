// Requests whose counters lie in several parts of a store, such as slots of a cluster, where no one
// step decides on all of them.
//
//   claims:      [a:1][b:2][c:1]
//   one part     ──> as it is, to the store behind
//   several      ──> [a c] to 1, [b] to 2, all at once
//                      all have room           ──> allowed: decisions and receipts as they came
//                      one has none            ──> what the others charged is undone; denied
//                      one failed, or refused  ──> the same; its status
//
// Guarantee. Let charged(k, t) be what a key's part has charged in a stretch t, net of what was
// undone, and bound(k, t) what the store behind promises of it. Whoever was told `allowed` was
// charged on every binding claim, in its part, and gets nothing of it back from here, so
//
//   admitted(k, t)  <=  charged(k, t)  <=  bound(k, t)        for every key, in every stretch
//
// however parts answer, fail, or are late. What another part vetoes is there until it is undone:
// others may be denied for it meanwhile, nobody is admitted. A charge whose answer, or whose undo,
// was lost stays, and is paid back with time.
//
// On a veto:   binding, shadow          undone; told as if they had only been looked at
//                                       (algorithm/uncharged.h says which field is approximate)
//              soft, or charge_denied   charged, as the store behind would have done
// On an error: all is undone that parts which answered have charged, of whatever kind; the group
//              gets one status, of those that there were the one that promises least.
// A shadow claim is charged if it and every binding claim have room, in whatever part.
//
// A group ends when all of its parts have, at its deadline at the latest.
//
// Cost: of a claim that is alone nothing; of several in one part `part_of` for each. Over several
// parts about 25 ns a claim, which are copied (split_store_bench.cc); in steady state nothing is
// allocated.
//
// For one event loop, as the store behind. What is under way when this is destroyed ends as the
// store behind ends it; its callbacks touch nothing that is gone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "sluice/store/remote_store.h"

namespace sluice {

class SplitStore final : public RemoteStore {
 public:
  // Which part a claim's counter lies in. May change from one request to the next.
  using PartOf = std::function<std::uint32_t(const RemoteClaim& claim)>;

  // `inner` takes groups whose claims all lie in one part. It outlives this, and ends what is under
  // way before it goes: Cancelled, after which it is not called any more. (Where only one of its
  // parts goes, it should say Unavailable.)
  SplitStore(RemoteStore& inner, PartOf part_of);
  SplitStore(const SplitStore&) = delete;
  SplitStore& operator=(const SplitStore&) = delete;
  ~SplitStore() override;

  [[nodiscard]] absl::StatusOr<std::shared_ptr<const RemoteLimit>> Prepare(
      const Limit& limit) const override;
  [[nodiscard]] absl::Status Apply(RemoteGroup& group, Time deadline, Done done) override;
  // A claim's key leads to its part.
  void Undo(const RemoteClaim& claim, std::uint64_t units) override;
  void Renew(const RemoteClaim& claim) override;

 private:
  class Core;

  RemoteStore& inner_;
  const PartOf part_of_;
  const std::shared_ptr<Core> core_;  // shared with what is under way
};

}  // namespace sluice
