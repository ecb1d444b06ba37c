// A fixed range of zeroed memory straight from the system, in the largest pages that can be had:
// reserved huge pages of 1 GB or 2 MB, else transparent huge pages, else ordinary ones. A random
// line in ordinary pages costs 1.2 to 1.8 times one in huge pages (the TLB).
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"

namespace sluice::memory {

class Pages {
 public:
  // Takes at least `bytes` (maybe none) and touches every page, so that no page fault comes later.
  // kResourceExhausted with `what` in the message: the system does not have it.
  static absl::StatusOr<Pages> Take(std::size_t bytes, std::string_view what);

  Pages() = default;
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;  // aligned to 4 KB at least
  std::size_t size_ = 0;
};

}  // namespace sluice::memory
