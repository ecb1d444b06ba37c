// The fields in which answers tell of limits, and the dialects that write them.
//
// clang-format off: it would fill the rows of the table as if they were sentences
//
//   for a limit of 100 in 60 s of which 50 are left, and all is there again in 30 s
//
//   draft-11   RateLimit-Policy: "api";q=100;w=60      RateLimit: "api";r=50;t=30
//   draft-07   RateLimit-Policy: 100;w=60              RateLimit: limit=100, remaining=50, reset=30
//   draft-06   RateLimit-Policy: 100;w=60              RateLimit-Limit: 100
//                                                      RateLimit-Remaining: 50
//                                                      RateLimit-Reset: 30
//   envoy      x-ratelimit-limit: 100, 100;w=60        x-ratelimit-remaining: 50
//                                                      x-ratelimit-reset: 30
//   x-delta    X-RateLimit-Limit: 100                  X-RateLimit-Remaining: 50
//                                                      X-RateLimit-Reset: 30
//   x-epoch    as x-delta, but                         X-RateLimit-Reset: 1700000030  (since 1970)
//
// clang-format on
//
// The drafts are those of draft-ietf-httpapi-ratelimit-headers (08 to 10 write what 11 writes, 03
// to 05 what 06 or envoy writes). Dialects that write one field in two ways do not go together:
// draft-11 with draft-07, and the last three with each other. RateLimit-Policy is written once, by
// the newest draft; where draft-06 stands beside draft-11 it has the others of its fields.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::transport {

struct HeaderDialects {
  bool draft_11 = false;
  bool draft_07 = false;
  bool draft_06 = false;
  bool envoy = false;
  bool x_delta = false;
  bool x_epoch = false;

  [[nodiscard]] bool any_x() const { return envoy || x_delta || x_epoch; }
};

enum class LimitField : std::uint8_t {
  kPolicy,     // RateLimit-Policy
  kRateLimit,  // RateLimit
  kLimit,      // RateLimit-Limit
  kRemaining,
  kReset,
  kXLimit,  // X-RateLimit-Limit
  kXRemaining,
  kXReset,
};
inline constexpr std::size_t kLimitFields = 8;

[[nodiscard]] std::string_view NameOf(LimitField field);
// Whatever the case of the name.
[[nodiscard]] std::optional<LimitField> FindLimitField(std::string_view name);

// Whether one of the dialects writes the field.
[[nodiscard]] bool Writes(const HeaderDialects& dialects, LimitField field);

// What an upstream said in such fields; several lines of one field are one list.
class UpstreamLimits {
 public:
  void Add(LimitField field, std::string_view value);
  void Clear();  // keeps its room
  [[nodiscard]] const std::string& operator[](LimitField field) const {
    return values_[static_cast<std::size_t>(field)];
  }

 private:
  std::array<std::string, kLimitFields> values_;
};

// Whether the text is a list of strings with parameters (RFC 9651), as draft-11 writes both of its
// fields. One such list can follow another in one field; anything else would make the whole field
// unreadable.
[[nodiscard]] bool IsListOfStrings(std::string_view text);

// What older dialects say of one rule.
struct SaidOfOne {
  std::uint64_t remaining = 0;
  std::uint64_t reset = 0;  // seconds from now, or since 1970
};
// From RateLimit as draft-07 writes it. Nothing where it is not in that form.
[[nodiscard]] std::optional<SaidOfOne> ReadDictionary(std::string_view text);
// From a field for each number.
[[nodiscard]] std::optional<SaidOfOne> ReadNumbers(std::string_view remaining,
                                                   std::string_view reset);

}  // namespace sluice::transport
