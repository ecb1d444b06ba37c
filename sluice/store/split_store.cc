#include "sluice/store/split_store.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

#include "sluice/algorithm/uncharged.h"

namespace sluice {
namespace {

// How little a status promises of what was charged (remote_store.h). Closed comes first: there is
// nobody left to undo anything.
int Rank(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kResourceExhausted:
      return 1;
    case absl::StatusCode::kUnavailable:
      return 2;
    case absl::StatusCode::kDataLoss:
      return 3;
    case absl::StatusCode::kDeadlineExceeded:
      return 5;
    case absl::StatusCode::kInternal:
      return 6;
    case absl::StatusCode::kCancelled:
      return 7;
    default:
      return 4;
  }
}

// Whether a veto of another claim takes its charge back.
bool YieldsToVeto(const RemoteClaim& claim) {
  const bool asks = claim.kind == ClaimKind::kBinding || claim.kind == ClaimKind::kShadow;
  return asks && !claim.charge_denied;
}

}  // namespace

// Kept and used again: what it holds grows and is not given back.
class SplitStore::Core : public std::enable_shared_from_this<Core> {
 public:
  explicit Core(RemoteStore& inner) : inner_(inner) {}

  // The first `same` claims lie in part `first`.
  absl::Status Apply(RemoteGroup& group, std::uint32_t first, std::size_t same,
                     const PartOf& part_of, Time deadline, Done done);

 private:
  struct Split;
  struct Part {
    Core* core = nullptr;
    Split* split = nullptr;
    std::uint32_t number = 0;
    std::vector<RemoteClaim> claims;
    RemoteGroup group;
    bool answered = false;  // with a decision
    std::size_t told = 0;   // of its claims
  };
  struct Split {
    RemoteGroup* group = nullptr;
    Done done;
    absl::Status status;
    std::size_t waiting = 0;                   // for so many parts
    std::vector<std::unique_ptr<Part>> parts;  // the first `used` of them
    std::size_t used = 0;
    std::vector<Part*> part_of;  // each claim
  };

  Split& NewSplit(RemoteGroup& group, Done done);
  Part& PartFor(Split& split, std::uint32_t number);
  void Add(Split& split, const RemoteClaim& claim, std::uint32_t number);
  void Send(Split& split, Time deadline);
  void OnAnswer(Part& part, const absl::Status& status);
  static void Fail(Split& split, const absl::Status& status);
  void Finish(Split& split);
  void Tell(Split& split);
  void TakeBackAll(Split& split);
  void Recycle(Split& split);

  RemoteStore& inner_;
  std::vector<std::unique_ptr<Split>> all_;
  std::vector<Split*> free_;
};

absl::Status SplitStore::Core::Apply(RemoteGroup& group, std::uint32_t first, std::size_t same,
                                     const PartOf& part_of, Time deadline, Done done) {
  Split& split = NewSplit(group, std::move(done));
  for (std::size_t i = 0; i < group.claims.size(); ++i) {
    const RemoteClaim& claim = group.claims[i];
    Add(split, claim, i < same ? first : part_of(claim));
  }
  Send(split, deadline);
  if (split.waiting > 0) return absl::OkStatus();
  absl::Status refused = std::move(split.status);
  Recycle(split);
  return refused;
}

SplitStore::Core::Split& SplitStore::Core::NewSplit(RemoteGroup& group, Done done) {
  if (free_.empty()) {
    all_.push_back(std::make_unique<Split>());
    free_.push_back(all_.back().get());
  }
  Split& split = *free_.back();
  free_.pop_back();
  split.group = &group;
  split.done = std::move(done);
  split.status = absl::OkStatus();
  return split;
}

SplitStore::Core::Part& SplitStore::Core::PartFor(Split& split, std::uint32_t number) {
  for (std::size_t i = 0; i < split.used; ++i) {
    if (split.parts[i]->number == number) return *split.parts[i];
  }
  if (split.used == split.parts.size()) split.parts.push_back(std::make_unique<Part>());
  Part& part = *split.parts[split.used++];
  part.core = this;
  part.split = &split;
  part.number = number;
  part.claims.clear();
  part.answered = false;
  part.told = 0;
  return part;
}

void SplitStore::Core::Add(Split& split, const RemoteClaim& claim, std::uint32_t number) {
  assert(claim.lease == Duration{0});
  Part& part = PartFor(split, number);
  part.claims.push_back(claim);
  split.part_of.push_back(&part);
}

// Behind one that is refused at once none is sent: it would only be undone.
void SplitStore::Core::Send(Split& split, Time deadline) {
  for (std::size_t i = 0; i < split.used; ++i) {
    Part& part = *split.parts[i];
    part.group = {.claims = part.claims};
    // Two pointers, which keep all of this alive: as much as a callback holds without allocating.
    const absl::Status asked =
        inner_.Apply(part.group, deadline,
                     [self = std::shared_ptr<Part>(shared_from_this(), &part)](
                         const absl::Status& status) { self->core->OnAnswer(*self, status); });
    if (!asked.ok()) return Fail(split, asked);
    ++split.waiting;
  }
}

void SplitStore::Core::OnAnswer(Part& part, const absl::Status& status) {
  Split& split = *part.split;
  part.answered = status.ok();
  if (!status.ok()) Fail(split, status);
  if (--split.waiting == 0) Finish(split);
}

void SplitStore::Core::Fail(Split& split, const absl::Status& status) {
  if (Rank(status) > Rank(split.status)) split.status = status;
}

void SplitStore::Core::Finish(Split& split) {
  if (split.status.ok()) {
    Tell(split);
  } else if (!absl::IsCancelled(split.status)) {
    TakeBackAll(split);
  }
  // Whoever is told may ask anew, or destroy the store.
  Done done = std::move(split.done);
  const absl::Status status = std::move(split.status);
  Recycle(split);
  done(status);
}

void SplitStore::Core::Tell(Split& split) {
  const auto end = split.parts.begin() + static_cast<std::ptrdiff_t>(split.used);
  RemoteGroup& group = *split.group;
  group.allowed =
      std::all_of(split.parts.begin(), end, [](const auto& part) { return part->group.allowed; });
  for (std::size_t i = 0; i < group.claims.size(); ++i) {
    Part& part = *split.part_of[i];
    const RemoteClaim& answered = part.claims[part.told++];
    RemoteClaim& claim = group.claims[i];
    claim.decision = answered.decision;
    claim.receipt = answered.receipt;
    claim.good_for = answered.good_for;
    if (group.allowed || claim.receipt.units == 0 || !YieldsToVeto(claim)) continue;
    inner_.Undo(answered, claim.receipt.units);
    claim.decision = Uncharged(claim.limit->limit(), claim.decision, claim.receipt);
    claim.receipt = {};
  }
}

void SplitStore::Core::TakeBackAll(Split& split) {
  for (std::size_t i = 0; i < split.used; ++i) {
    const Part& part = *split.parts[i];
    if (!part.answered) continue;
    for (const RemoteClaim& claim : part.claims) {
      if (claim.receipt.units > 0) inner_.Undo(claim, claim.receipt.units);
    }
  }
}

void SplitStore::Core::Recycle(Split& split) {
  split.group = nullptr;
  split.done = nullptr;
  split.used = 0;
  split.part_of.clear();
  free_.push_back(&split);
}

SplitStore::SplitStore(RemoteStore& inner, PartOf part_of)
    : inner_(inner), part_of_(std::move(part_of)), core_(std::make_shared<Core>(inner)) {}

SplitStore::~SplitStore() = default;

absl::StatusOr<std::shared_ptr<const RemoteLimit>> SplitStore::Prepare(const Limit& limit) const {
  return inner_.Prepare(limit);
}

absl::Status SplitStore::Apply(RemoteGroup& group, Time deadline, Done done) {
  if (group.claims.size() == 1) return inner_.Apply(group, deadline, std::move(done));
  const std::uint32_t first = part_of_(group.claims[0]);
  for (std::size_t i = 1; i < group.claims.size(); ++i) {
    if (part_of_(group.claims[i]) == first) continue;
    return core_->Apply(group, first, i, part_of_, deadline, std::move(done));
  }
  return inner_.Apply(group, deadline, std::move(done));
}

void SplitStore::Undo(const RemoteClaim& claim, std::uint64_t units) { inner_.Undo(claim, units); }
void SplitStore::Renew(const RemoteClaim& claim) { inner_.Renew(claim); }

}  // namespace sluice
