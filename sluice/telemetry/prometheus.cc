#include "sluice/telemetry/prometheus.h"

#include <cassert>
#include <chrono>

namespace sluice {
namespace {

// Label values escape backslash, quote and line feed; all other bytes stand for themselves.
void AppendEscaped(std::string_view value, std::string& out) {
  for (const char c : value) {
    if (c == '\\' || c == '"') out.push_back('\\');
    if (c == '\n') {
      out += "\\n";
    } else {
      out.push_back(c);
    }
  }
}

// Exact, and without zeros at the end: 0.0025, 1.
std::string InSeconds(Duration time) {
  constexpr std::size_t kDigits = 9;  // of a second's nanoseconds
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  std::string fraction = std::to_string((time - whole).count());
  fraction.insert(0, kDigits - fraction.size(), '0');
  fraction.erase(fraction.find_last_not_of('0') + 1);
  std::string text = std::to_string(whole.count());
  return fraction.empty() ? text : text + "." + fraction;
}

}  // namespace

void PrometheusWriter::Family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  out_.append("# HELP ").append(name).append(" ").append(help).append("\n");
  out_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
}

void PrometheusWriter::Sample(Labels labels, std::uint64_t value) {
  out_ += name_;
  char before = '{';
  for (const auto& [label, text] : labels) {
    out_.push_back(before);
    out_.append(label).append("=\"");
    AppendEscaped(text, out_);
    out_.push_back('"');
    before = ',';
  }
  if (labels.size() > 0) out_.push_back('}');
  out_.append(" ").append(std::to_string(value)).append("\n");
}

void PrometheusWriter::Histogram(std::string_view name, std::string_view help,
                                 std::span<const Duration> bounds,
                                 std::span<const std::uint64_t> counts, Duration sum) {
  assert(counts.size() == bounds.size() + 1);
  Family(name, "histogram", help);
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    so_far += counts[i];
    out_.append(name).append("_bucket{le=\"");
    out_.append(i < bounds.size() ? InSeconds(bounds[i]) : "+Inf");
    out_.append("\"} ").append(std::to_string(so_far)).append("\n");
  }
  out_.append(name).append("_sum ").append(InSeconds(sum)).append("\n");
  out_.append(name).append("_count ").append(std::to_string(so_far)).append("\n");
}

}  // namespace sluice
