#include "sluice/config/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "sluice/base/closest_name.h"
#include "sluice/config/limit_text.h"

namespace sluice::config {
namespace {

constexpr std::string_view kNotInThisVersion = "is known, but not in this version";

// What was found where something else was expected.
std::string Found(const Node& node) {
  switch (node.kind) {
    case NodeKind::kNull:
      return "nothing";
    case NodeKind::kText:
      return node.text.empty() ? "an empty text" : Quoted(node.text);
    case NodeKind::kList:
      return "a list";
    case NodeKind::kMap:
      return "a map";
  }
  return "something else";
}

}  // namespace

std::string UnknownName(std::string_view kind, std::string_view name,
                        std::span<const std::string_view> known) {
  std::string message = fmt::format("unknown {} {}", kind, Quoted(name));
  if (const auto meant = ClosestName(name, known)) {
    message += fmt::format("; did you mean `{}`?", *meant);
  }
  return message;
}

void Value::Complain(std::string_view message, std::string_view hint) const {
  diagnostics_->Error(node_->location, fmt::format("`{}` {}", name_, message), hint);
}

template <typename T>
std::optional<T> Value::Accept(const Parsed<T>& parsed) const {
  if (parsed.ok()) return *parsed;
  Complain(parsed.complaint().message, parsed.complaint().hint);
  return std::nullopt;
}

std::optional<std::string_view> Value::Text() const {
  if (node_->kind == NodeKind::kText && !node_->text.empty()) return node_->text;
  Complain(fmt::format("must be text, got {}", Found(*node_)));
  return std::nullopt;
}

std::optional<bool> Value::Bool() const {
  if (node_->kind == NodeKind::kText && !node_->quoted) {
    if (node_->text == "true") return true;
    if (node_->text == "false") return false;
  }
  Complain(fmt::format("must be true or false, got {}", Found(*node_)));
  return std::nullopt;
}

std::optional<std::int64_t> Value::Integer(std::int64_t min, std::int64_t max) const {
  if (node_->kind != NodeKind::kText) {
    Complain(fmt::format("must be a whole number, got {}", Found(*node_)));
    return std::nullopt;
  }
  // A negative number is too small rather than no number, where there is a least one.
  const bool negative = node_->text.starts_with('-') && min > 0;
  const auto value =
      negative ? std::optional<std::int64_t>(min - 1) : Accept(ParseCount(node_->text));
  if (!value) return std::nullopt;
  if (*value >= min && *value <= max) return value;
  Complain(fmt::format("must be at {} {}, got {}", *value < min ? "least" : "most",
                       *value < min ? min : max, node_->text));
  return std::nullopt;
}

std::optional<std::int64_t> Value::Bytes(std::int64_t min, std::int64_t max) const {
  if (node_->kind != NodeKind::kText) {
    Complain(fmt::format("must be a number of bytes, got {}", Found(*node_)));
    return std::nullopt;
  }
  const auto value = Accept(ParseBytes(node_->text));
  if (!value || (*value >= min && *value <= max)) return value;
  Complain(fmt::format("must be at {} {} bytes, got {}", *value < min ? "least" : "most",
                       *value < min ? min : max, node_->text));
  return std::nullopt;
}

std::optional<Duration> Value::Length(Duration min, Duration max) const {
  if (node_->kind != NodeKind::kText) {
    Complain(fmt::format("must be a length of time, got {}", Found(*node_)));
    return std::nullopt;
  }
  const auto value = Accept(ParseDuration(node_->text));
  if (!value || (*value >= min && *value <= max)) return value;
  Complain(fmt::format("must be at {} {}, got {}", *value < min ? "least" : "most",
                       DurationText(*value < min ? min : max), node_->text));
  return std::nullopt;
}

std::optional<WrittenRate> Value::Rate() const {
  if (node_->kind == NodeKind::kText) return Accept(ParseRate(node_->text));
  Complain(fmt::format("must be a rate, got {}", Found(*node_)),
           "write for example `100/min` or `5/30s`");
  return std::nullopt;
}

std::vector<Value> Value::Items() const {
  if (node_->kind != NodeKind::kList) return {*this};
  if (node_->items.empty()) Complain("must not be an empty list");
  std::vector<Value> items;
  for (const Node& item : node_->items) items.emplace_back(name_, item, *diagnostics_);
  return items;
}

std::optional<std::size_t> Value::IndexOf(std::span<const std::string_view> words,
                                          std::initializer_list<std::string_view> later) const {
  const std::string all = fmt::format("{}", fmt::join(words, ", "));
  if (node_->kind != NodeKind::kText) {
    Complain(fmt::format("must be one of {}; got {}", all, Found(*node_)));
    return std::nullopt;
  }
  const auto word = std::find(words.begin(), words.end(), node_->text);
  if (word != words.end()) return static_cast<std::size_t>(word - words.begin());
  if (std::find(later.begin(), later.end(), node_->text) != later.end()) {
    diagnostics_->Error(node_->location,
                        fmt::format("`{}: {}` {}", name_, node_->text, kNotInThisVersion),
                        fmt::format("this version has {}", all));
    return std::nullopt;
  }
  const auto meant = ClosestName(node_->text, words);
  Complain(fmt::format("must be one of {}; got {}", all, Found(*node_)),
           meant ? fmt::format("did you mean `{}`?", *meant) : "");
  return std::nullopt;
}

Fields::Fields(const Node& node, std::string what, Diagnostics& diagnostics)
    : node_(node), what_(std::move(what)), diagnostics_(diagnostics) {
  if (is_map()) return;
  Complain(fmt::format("{} must be a map of fields, got {}", what_, Found(node_)));
}

void Fields::Complain(std::string_view message, std::string_view hint) const {
  diagnostics_.Error(node_.location, message, hint);
}

std::optional<Value> Fields::Take(std::string_view name) {
  known_.push_back(name);
  const Node* node = node_.Find(name);
  if (node == nullptr) return std::nullopt;
  const Value value(name, *node, diagnostics_);
  if (node->kind != NodeKind::kNull) return value;
  value.Complain("has no value");
  return std::nullopt;
}

std::optional<Value> Fields::Require(std::string_view name, std::string_view hint) {
  if (is_map() && node_.Find(name) == nullptr) {
    Complain(fmt::format("{} needs `{}`", what_, name), hint);
  }
  return Take(name);
}

void Fields::Later(std::initializer_list<std::string_view> names) {
  later_.insert(later_.end(), names.begin(), names.end());
}

void Fields::Elsewhere(std::span<const std::string_view> names, std::string_view where) {
  elsewhere_ = names;
  where_ = where;
}

void Fields::Refuse(std::string_view name, std::string_view why, std::string_view hint) {
  known_.push_back(name);
  for (const Node::Entry& entry : node_.entries) {
    if (entry.key.text == name) Value(name, entry.key, diagnostics_).Complain(why, hint);
  }
}

void Fields::Finish() {
  const auto contains = [](std::span<const std::string_view> names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  bool listed = false;
  for (const Node::Entry& entry : node_.entries) {
    const std::string& name = entry.key.text;
    if (contains(known_, name)) continue;
    if (contains(later_, name)) {
      Value(name, entry.key, diagnostics_).Complain(kNotInThisVersion, "leave it out");
      continue;
    }
    if (contains(elsewhere_, name)) {
      diagnostics_.Error(
          entry.key.location, fmt::format("unknown field {}", Quoted(name)),
          fmt::format("`{0}` has it: write `{0}: {{ {1}: ... }}` at the top of the file", where_,
                      name));
      continue;
    }
    // All names help once, and only where none of them is near.
    std::string hint;
    if (!listed && !ClosestName(name, known_)) {
      hint = fmt::format("{} has {}", what_, fmt::join(known_, ", "));
      listed = true;
    }
    diagnostics_.Error(entry.key.location, UnknownName("field", name, known_), hint);
  }
}

}  // namespace sluice::config
