#include "sluice/telemetry/prometheus.h"

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

}  // namespace sluice
