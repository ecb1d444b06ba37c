#include "sluice/base/closest_name.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "sluice/base/ascii.h"

namespace sluice {
namespace {

constexpr std::size_t kMaxLength = 64;  // longer ones are no mistyped names

char Fold(char c) { return c == '-' ? '_' : Lower(c); }

std::size_t Distance(std::string_view a, std::string_view b) {
  // Three rows of the matrix: the swap of two neighbours looks two rows back.
  std::array<std::array<std::size_t, kMaxLength + 1>, 3> rows;
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i - 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = Fold(a[i - 1]) == Fold(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && Fold(a[i - 1]) == Fold(b[j - 2]) && Fold(a[i - 2]) == Fold(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], rows[(i - 2) % 3][j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::optional<std::string_view> ClosestName(std::string_view given,
                                            std::span<const std::string_view> known) {
  if (given.empty() || given.size() > kMaxLength) return std::nullopt;
  std::optional<std::string_view> closest;
  std::size_t best = std::max<std::size_t>(1, given.size() / 3) + 1;
  for (const std::string_view name : known) {
    if (name.empty() || name.size() > kMaxLength) continue;
    const std::size_t distance = Distance(given, name);
    // With every letter changed it would be any name of that length.
    if (distance < best && distance < std::max(given.size(), name.size())) {
      best = distance;
      closest = name;
    }
  }
  return closest;
}

}  // namespace sluice
