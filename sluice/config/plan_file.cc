#include "sluice/config/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sluice/base/ascii.h"

namespace sluice::config {
namespace {

constexpr std::string_view kBlanks = " \t\r";

// Takes one field and the comma after it off the front; nothing when its quotes are out of order.
std::optional<std::string> TakeField(std::string_view& line) {
  line = Trim(line, kBlanks);
  if (!line.starts_with('"')) {
    const std::size_t end = std::min(line.find(','), line.size());
    const std::string field(Trim(line.substr(0, end), kBlanks));
    line.remove_prefix(end);
    return field.find('"') == field.npos ? std::optional(field) : std::nullopt;
  }
  std::string field;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] != '"') {
      field += line[i];
    } else if (line.substr(i, 2) == "\"\"") {
      field += line[++i];
    } else {
      line = Trim(line.substr(i + 1), kBlanks);
      return line.empty() || line.front() == ',' ? std::optional(field) : std::nullopt;
    }
  }
  return std::nullopt;
}

// The fields of a line; nothing when one is out of form.
std::optional<std::vector<std::string>> FieldsOf(std::string_view line) {
  std::vector<std::string> fields;
  while (true) {
    auto field = TakeField(line);
    if (!field) return std::nullopt;
    fields.push_back(*std::move(field));
    if (line.empty()) return fields;
    line.remove_prefix(1);
  }
}

}  // namespace

PlanNames ReadPlanFile(std::string_view text, FileId file, Diagnostics& diagnostics,
                       PlanTable& plans) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  absl::flat_hash_map<std::string, int> lines;  // of each identity
  PlanNames names;
  bool first = true;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end), kBlanks);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const Location at{file, number, 1};
    const auto fields = FieldsOf(line);
    const bool heading =
        std::exchange(first, false) && fields && fields->size() == 2 && fields->back() == "plan";
    if (heading) continue;
    if (!fields) {
      diagnostics.Error(at, "the quotes of this line are out of order", "write \"\" for a quote");
    } else if (fields->size() != 2) {
      diagnostics.Error(
          at,
          fmt::format("this line has {}, not a key and a plan", Counted(fields->size(), "field")),
          "a comma inside a field needs quotes around the field");
    } else if ((*fields)[0].empty() || (*fields)[1].empty()) {
      diagnostics.Error(at,
                        fmt::format("this line has no {}", (*fields)[0].empty() ? "key" : "plan"));
    } else if (const auto [known, added] = lines.try_emplace((*fields)[0], number); !added) {
      diagnostics.Error(at, fmt::format("this key has a plan already, in line {}", known->second));
    } else {
      names.try_emplace((*fields)[1], at);
      plans.Set((*fields)[0], (*fields)[1]);
    }
  }
  return names;
}

}  // namespace sluice::config
