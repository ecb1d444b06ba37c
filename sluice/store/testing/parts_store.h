// A remote store for tests whose counters lie in parts, as in slots of a cluster: each part is a
// SharedStore of its own, answered when the test says so.
//
//   PartsStore parts(*counters, 3);                  // what all nodes see
//   SplitStore store(parts, PartsStore::PartOf);
//   ... store.Apply(...) ...
//   parts.part(0).Answer(now); parts.part(2).Fail(...);
//
// A key's part is the digit behind its first ':', as in "api:2".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/store/testing/shared_store.h"

namespace sluice {

class PartsStore final : public RemoteStore {
 public:
  PartsStore(Store& counters, std::size_t parts, Now now = {});

  static std::uint32_t PartOf(const RemoteClaim& claim);

  absl::StatusOr<std::shared_ptr<const RemoteLimit>> Prepare(const Limit& limit) const override;
  // A group whose claims are not all of one part is an error in the test.
  absl::Status Apply(RemoteGroup& group, Time deadline, Done done) override;
  void Undo(const RemoteClaim& claim, std::uint64_t units) override;
  void Renew(const RemoteClaim& claim) override;

  [[nodiscard]] SharedStore& part(std::size_t number) { return *parts_[number]; }
  [[nodiscard]] std::size_t size() const { return parts_.size(); }
  // All parts.
  void Answer(Now now);
  void SetNow(Now now);
  // From now on what is undone is lost.
  void LoseUndos(bool lose) { loses_undos_ = lose; }

 private:
  std::vector<std::unique_ptr<SharedStore>> parts_;
  SharedLeases leases_;
  bool loses_undos_ = false;
};

}  // namespace sluice
