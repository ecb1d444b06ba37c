// Names for single requests, so that a client's complaint, a line of the log and a line of the
// upstream's log can be brought together: X-Request-Id.
//
//   3f9a51c07b7e4d0c8a6de2f1b94c0d55      128 random bits: nobody guesses another's
//
// An id that a trusted proxy has given is kept if it is in form; one of a client's own making is
// replaced, for it could be written into logs that others read, or be another request's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::gateway {

inline constexpr std::string_view kRequestIdField = "X-Request-Id";
inline constexpr std::size_t kMaxRequestIdBytes = 128;

// 1 to kMaxRequestIdBytes letters, digits and `-_.:/+=@`: what can stand in any log as it is.
[[nodiscard]] bool IsRequestId(std::string_view text);

// Makes new ids. For one thread. Cost: one system call for 64 ids; no allocation.
class RequestIds {
 public:
  void Append(std::string* out);

 private:
  static constexpr std::size_t kIdBytes = 16;

  std::array<std::uint8_t, kIdBytes * 64> random_;
  std::size_t used_ = sizeof(random_);
};

}  // namespace sluice::gateway
