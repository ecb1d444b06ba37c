#include "sluice/store/memory/internal/pages.h"

#include <linux/mman.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace sluice::memory {
namespace {

constexpr std::size_t kSmallPage = std::size_t{4} << 10;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kGiantPage = std::size_t{1} << 30;

std::size_t RoundUp(std::size_t size, std::size_t unit) { return (size + unit - 1) / unit * unit; }

void* Map(std::size_t size, int more_flags) {
  void* const at =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more_flags, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

// Ordinary pages, so aligned that the kernel may make huge ones of them. What was mapped too much
// for the alignment is given back.
void* MapAligned(std::size_t size) {
  if (size < kHugePage) return Map(size, 0);
  auto* const whole = static_cast<std::byte*>(Map(size + kHugePage, 0));
  if (whole == nullptr) return nullptr;
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::uintptr_t>(whole) % kHugePage) % kHugePage;
  if (before > 0) munmap(whole, before);
  munmap(whole + before + size, kHugePage - before);
  madvise(whole + before, size, MADV_HUGEPAGE);
  return whole + before;
}

// Makes every page real now. Fails, instead of being killed later, where the kernel can tell.
bool Touch(std::byte* data, std::size_t size) {
#ifdef MADV_POPULATE_WRITE
  if (madvise(data, size, MADV_POPULATE_WRITE) == 0) return true;
  if (errno == ENOMEM) return false;
#endif
  for (std::size_t at = 0; at < size; at += kSmallPage) {
    reinterpret_cast<volatile std::byte*>(data)[at] = std::byte{0};
  }
  return true;
}

}  // namespace

absl::StatusOr<Pages> Pages::Take(std::size_t bytes, std::string_view what) {
  Pages pages;
  if (bytes == 0) return pages;
  const struct {
    std::size_t page;
    int flags;
  } reserved[] = {{kGiantPage, MAP_HUGETLB | MAP_HUGE_1GB},
                  {kHugePage, MAP_HUGETLB | MAP_HUGE_2MB}};
  for (const auto& kind : reserved) {
    // Not where half a page would be lost.
    if (pages.data_ != nullptr || bytes < kind.page / 2) continue;
    pages.size_ = RoundUp(bytes, kind.page);
    pages.data_ = static_cast<std::byte*>(Map(pages.size_, kind.flags));
  }
  if (pages.data_ == nullptr) {
    pages.size_ = RoundUp(bytes, kSmallPage);
    pages.data_ = static_cast<std::byte*>(MapAligned(pages.size_));
  }
  if (pages.data_ == nullptr || !Touch(pages.data_, pages.size_)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", absl::string_view(what.data(), what.size()), ": ",
                     pages.size_, " bytes: ", std::strerror(errno)));
  }
  return pages;
}

Pages::~Pages() {
  if (data_ != nullptr) munmap(data_, size_);
}

Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace sluice::memory
