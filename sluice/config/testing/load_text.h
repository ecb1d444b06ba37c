// A configuration given as text, for tests: what it says, or what is wrong with it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "sluice/config/load.h"

namespace sluice::config {

// What is wrong with `text`: "line:column message = hint" lines; warnings begin with "warning".
inline std::string Complaints(std::string_view text, const std::string& base_dir = "/nowhere") {
  const LoadResult result = LoadText("sluice.yaml", text, base_dir, 1);
  EXPECT_EQ(result.config.has_value(), result.diagnostics.errors() == 0);
  std::string all;
  for (const Diagnostic& one : result.diagnostics.Sorted()) {
    all += (one.severity == Severity::kWarning ? "warning " : "") +
           std::to_string(one.location.line) + ":" + std::to_string(one.location.column) + " " +
           one.message + (one.hint.empty() ? "" : " = " + one.hint) + "\n";
  }
  return all;
}

inline Config Good(std::string_view text, const std::string& base_dir = "/nowhere") {
  LoadResult result = LoadText("sluice.yaml", text, base_dir, 1);
  EXPECT_EQ(result.diagnostics.Text(), "");
  return result.config ? *std::move(result.config) : Config{};
}

}  // namespace sluice::config
