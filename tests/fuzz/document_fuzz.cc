// YAML of any kind: a tree within its bounds, or printable complaints at places
// that exist.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sluice/config/document.h"

namespace {

using sluice::config::Node;

std::size_t CountNodes(const Node& node, int depth) {
  if (depth > sluice::config::kMaxDocumentDepth + 1) std::abort();
  if (node.location.line < 1 || node.location.column < 1) std::abort();
  std::size_t count = 1;
  for (const Node& item : node.items) count += CountNodes(item, depth + 1);
  for (const auto& [key, value] : node.entries) {
    if (key.kind != sluice::config::NodeKind::kText) std::abort();
    if (node.Find(key.text) != &value) std::abort();  // unique
    count += 1 + CountNodes(value, depth + 1);
  }
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  sluice::config::Diagnostics diagnostics;
  const auto root = sluice::config::ParseDocument("f", text, diagnostics);
  if (!root && diagnostics.errors() == 0) std::abort();
  if (root && CountNodes(*root, 0) > sluice::config::kMaxDocumentNodes) std::abort();

  const int lines =
      1 + static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return c < ' '; }));
  for (const auto& one : diagnostics.Sorted()) {
    if (one.location.line > lines) std::abort();
  }
  const std::string told = diagnostics.Text();
  for (const char c : told) {
    if (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t') std::abort();
  }
  return 0;
}
