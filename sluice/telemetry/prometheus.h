// The Prometheus text exposition format, version 0.0.4: one family after another, each with its
// help and type, its samples behind it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/base/time.h"

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

  // How long something took, in seconds. counts[i] took at most bounds[i], and longer than those
  // before it: each counts once. There is one count more than bounds: of all that took longer.
  void Histogram(std::string_view name, std::string_view help, std::span<const Duration> bounds,
                 std::span<const std::uint64_t> counts, Duration sum);

 private:
  std::string& out_;
  std::string name_;
};

}  // namespace sluice
