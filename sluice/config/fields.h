// From nodes to typed values, with every complaint in one manner of speaking.
//
//   Fields fields(node, "a rule", diagnostics);
//   if (const auto burst = fields.Take("burst")) rule.burst = burst->Integer(1, kMaxBurst);
//   fields.Later({"lease"});
//   fields.Finish();   // complains about every field that nobody took
//
// A reader that finds something else than it was asked for complains at the value's place and gives
// nothing; its caller goes on with the next field, so that all complaints come at once.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/config/diagnostics.h"
#include "sluice/config/document.h"
#include "sluice/config/values.h"

namespace sluice::config {

// One value and the name of its field. Refers to the tree and the diagnostics, which live longer.
class Value {
 public:
  Value(std::string_view name, const Node& node, Diagnostics& diagnostics)
      : name_(name), node_(&node), diagnostics_(&diagnostics) {}

  [[nodiscard]] const Node& node() const { return *node_; }
  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] Diagnostics& diagnostics() const { return *diagnostics_; }

  // "`burst` " + message, at this value.
  void Complain(std::string_view message, std::string_view hint = "") const;

  // Text that is not empty; of a number too, as it was written.
  [[nodiscard]] std::optional<std::string_view> Text() const;
  [[nodiscard]] std::optional<bool> Bool() const;  // true or false
  [[nodiscard]] std::optional<std::int64_t> Integer(std::int64_t min, std::int64_t max) const;
  [[nodiscard]] std::optional<std::int64_t> Bytes(std::int64_t min, std::int64_t max) const;
  [[nodiscard]] std::optional<Duration> Length(Duration min, Duration max) const;
  [[nodiscard]] std::optional<WrittenRate> Rate() const;
  // The values of a list, or the one value that stands in its place. An empty list is a complaint.
  [[nodiscard]] std::vector<Value> Items() const;

  // One of a few words. A word of `later` is known, but not in this version.
  template <typename Choice>
  struct Word {
    std::string_view word;
    Choice choice;
  };
  template <typename Choice, std::size_t N>
  [[nodiscard]] std::optional<Choice> OneOf(
      const std::array<Word<Choice>, N>& words,
      std::initializer_list<std::string_view> later = {}) const {
    std::array<std::string_view, N> names;
    for (std::size_t i = 0; i < N; ++i) names[i] = words[i].word;
    const auto index = IndexOf(names, later);
    return index ? std::optional(words[*index].choice) : std::nullopt;
  }

 private:
  template <typename T>
  std::optional<T> Accept(const Parsed<T>& parsed) const;
  [[nodiscard]] std::optional<std::size_t> IndexOf(
      std::span<const std::string_view> words, std::initializer_list<std::string_view> later) const;

  std::string_view name_;
  const Node* node_;
  Diagnostics* diagnostics_;
};

// The fields of one map. A node that is no map is complained about and has no fields.
class Fields {
 public:
  // `what` names it in messages: "a rule", "`gateway`".
  Fields(const Node& node, std::string what, Diagnostics& diagnostics);

  // The value of a field, and makes the field known. One without a value (`limit:`) is complained
  // about and not given.
  [[nodiscard]] std::optional<Value> Take(std::string_view name);
  // As Take, and complains when the field is not there.
  [[nodiscard]] std::optional<Value> Require(std::string_view name, std::string_view hint = "");

  // Fields that are refused with "known, not in this version".
  void Later(std::initializer_list<std::string_view> names);
  // Makes a field known that is taken only under other circumstances, and complains when it is
  // there: "`burst` " + why.
  void Refuse(std::string_view name, std::string_view why, std::string_view hint = "");

  // Names that the map `where` has, and not this one: whoever writes them here is told so.
  void Elsewhere(std::span<const std::string_view> names, std::string_view where);

  // Complains about every field that is not known.
  void Finish();

  [[nodiscard]] bool is_map() const { return node_.kind == NodeKind::kMap; }
  [[nodiscard]] const Node& node() const { return node_; }
  [[nodiscard]] Diagnostics& diagnostics() const { return diagnostics_; }
  // The map as a whole: where it begins.
  void Complain(std::string_view message, std::string_view hint = "") const;

 private:
  const Node& node_;
  const std::string what_;
  Diagnostics& diagnostics_;
  std::vector<std::string_view> known_;
  std::vector<std::string_view> later_;
  std::span<const std::string_view> elsewhere_;
  std::string_view where_;
};

// "unknown field `algoritm`; did you mean `algorithm`?", for whatever kind of name it is.
[[nodiscard]] std::string UnknownName(std::string_view kind, std::string_view name,
                                      std::span<const std::string_view> known);

}  // namespace sluice::config
