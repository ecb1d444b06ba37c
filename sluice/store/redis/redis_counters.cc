#include "sluice/store/redis/redis_counters.h"

#include <algorithm>

namespace sluice::redis {
namespace {

struct Known {
  std::string_view word;
  ServerError error;
  std::string_view name;
};

constexpr std::array<Known, 17> kKnown = {{
    {"READONLY", ServerError::kReadOnly, "readonly"},
    {"LOADING", ServerError::kLoading, "loading"},
    {"OOM", ServerError::kOutOfMemory, "oom"},
    {"BUSY", ServerError::kBusy, "busy"},
    {"NOAUTH", ServerError::kNoAuth, "noauth"},
    {"NOPERM", ServerError::kNoPerm, "noperm"},
    {"MISCONF", ServerError::kMisconf, "misconf"},
    {"WRONGTYPE", ServerError::kWrongType, "wrongtype"},
    {"MASTERDOWN", ServerError::kMasterDown, "masterdown"},
    {"CLUSTERDOWN", ServerError::kClusterDown, "clusterdown"},
    {"MOVED", ServerError::kMoved, "moved"},
    {"ASK", ServerError::kMoved, "moved"},
    {"CROSSSLOT", ServerError::kMoved, "moved"},
    {"TRYAGAIN", ServerError::kMoved, "moved"},
    {"NOSCRIPT", ServerError::kNoScript, "noscript"},
    {"DAMAGED", ServerError::kDamaged, "damaged"},
    {"", ServerError::kOther, "other"},
}};

}  // namespace

void RedisHistogram::Add(Duration took) {
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), took);
  buckets_[static_cast<std::size_t>(bucket - kBounds.begin())].Add();
  nanoseconds_.Add(static_cast<std::uint64_t>(std::max(took, Duration{0}).count()));
}

ServerError ServerErrorOf(std::string_view text) {
  const std::string_view word = text.substr(0, text.find(' '));
  for (const Known& known : kKnown) {
    if (known.word == word) return known.error;
  }
  // Of a command inside of the script the server has no word of its own for it.
  if (text.starts_with("ERR The user executing the script can't")) return ServerError::kNoPerm;
  return ServerError::kOther;
}

std::string_view NameOf(ServerError error) {
  for (const Known& known : kKnown) {
    if (known.error == error) return known.name;
  }
  return "other";
}

}  // namespace sluice::redis
