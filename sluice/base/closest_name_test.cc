#include "sluice/base/closest_name.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

TEST(ClosestNameTest, FindsTheNameThatWasMeant) {
  static constexpr std::string_view kKnown[] = {"algorithm", "limit", "burst", "on_missing_key",
                                                "key",       "ip",    "mode"};
  const struct {
    std::string_view given;
    std::string_view meant;  // empty: none
  } rows[] = {
      {"algoritm", "algorithm"},
      {"algorihtm", "algorithm"},  // two letters swapped is one slip
      {"Limit", "limit"},
      {"limits", "limit"},
      {"burts", "burst"},
      {"on-missing-key", "on_missing_key"},
      {"onmissingkey", "on_missing_key"},
      {"kye", "key"},
      {"pi", "ip"},
      {"colour", ""},
      {"x", ""},
      {"xy", ""},
      {"", ""},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(ClosestName(row.given, kKnown).value_or(""), row.meant) << row.given;
  }
  EXPECT_FALSE(ClosestName(std::string(1000, 'l'), kKnown).has_value());
  EXPECT_FALSE(ClosestName("limit", {}).has_value());
}

}  // namespace
}  // namespace sluice
