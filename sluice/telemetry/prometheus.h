// The Prometheus text exposition format, version 0.0.4: one family after another, each with its
// help and type, its samples behind it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace sluice {

class PrometheusWriter {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // Appends to `out`, which outlives the writer.
  explicit PrometheusWriter(std::string& out) : out_(out) {}

  // `type` is "counter" or "gauge". The samples that follow belong to it.
  void Family(std::string_view name, std::string_view type, std::string_view help);
  void Sample(Labels labels, std::uint64_t value);

  // A family with one sample without labels.
  void Single(std::string_view name, std::string_view type, std::string_view help,
              std::uint64_t value) {
    Family(name, type, help);
    Sample({}, value);
  }

 private:
  std::string& out_;
  std::string name_;
};

}  // namespace sluice
