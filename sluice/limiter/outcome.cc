#include "sluice/limiter/outcome.h"

#include <algorithm>

#include "sluice/base/int128.h"

namespace sluice {

void DecideOnly(std::span<Claim> claims) {
  for (Claim& claim : claims) {
    claim.kind = claim.charge_denied ? ClaimKind::kSoft : ClaimKind::kLook;
  }
}

bool Tighter(const Claim& a, const Claim& b) {
  const std::uint64_t capacity_a = std::max<std::uint64_t>(CapacityOf(*a.limit), 1);
  const std::uint64_t capacity_b = std::max<std::uint64_t>(CapacityOf(*b.limit), 1);
  // a's remaining / capacity_a < b's remaining / capacity_b, in whole numbers.
  return Uint128{a.decision.remaining} * capacity_b < Uint128{b.decision.remaining} * capacity_a;
}

std::string_view AnswerName(Answer answer) {
  switch (answer) {
    case Answer::kAllowed:
      return "allowed";
    case Answer::kDelayed:
      return "delayed";
    case Answer::kUnavailable:
      return "unavailable";
    case Answer::kLimited:
      return "limited";
    case Answer::kNeverPasses:
      return "never";
    case Answer::kMissingIdentity:
      return "missing_identity";
    case Answer::kDenied:
      return "denied";
  }
  return "";
}

}  // namespace sluice
