// A YAML file as a tree in which everything knows where it stands.
//
// YAML with its sharp edges taken off. One document, whose root is a map; keys are plain text and
// unique; values are text until somebody asks for more (`no` is the text "no"). Refused, each with
// its place and what to do: a key given twice, a second document, tags, merge keys, an alias of
// itself, quotes that are never closed, tabs as indentation, an empty file, bytes that are no
// UTF-8. Windows line ends and a byte order mark are fine.
//
// Bounds: kMaxDocumentBytes, kMaxDocumentDepth, and kMaxDocumentNodes after aliases are resolved,
// so that no file, however small ("billion laughs"), takes more than a second or some tens of
// megabytes.
//
// The YAML library throws; nothing leaves this file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/config/diagnostics.h"

namespace sluice::config {

inline constexpr std::size_t kMaxDocumentBytes = std::size_t{1} << 20;
inline constexpr int kMaxDocumentDepth = 32;
inline constexpr std::size_t kMaxDocumentNodes = 200'000;  // long texts count for several

enum class NodeKind : std::uint8_t { kNull, kText, kList, kMap };

struct Node {
  struct Entry;

  NodeKind kind = NodeKind::kNull;
  Location location;           // of its first character; of its key where it has no value
  std::string text;            // kText
  bool quoted = false;         // kText: so `"true"` is no truth value
  std::vector<Node> items;     // kList
  std::vector<Entry> entries;  // kMap, in the order of the file

  // The value of a key of this map; null when there is none.
  [[nodiscard]] const Node* Find(std::string_view key) const;
};

struct Node::Entry {
  Node key;  // kText
  Node value;
};

// The root of a document, a map. Complaints go to `diagnostics`, under a file that is added to it
// by `name`. Nothing when there is no map to go on with; after lesser complaints (a key given
// twice: the first one is kept) the tree is there, so that all that is wrong can be told at once.
std::optional<Node> ParseDocument(std::string_view name, std::string_view text,
                                  Diagnostics& diagnostics);

// The same for a file on disk.
std::optional<Node> ReadDocument(const std::string& path, Diagnostics& diagnostics);

}  // namespace sluice::config
