// Side-by-side timing: the contestants take turns within one run, round after round, so that a
// machine whose speed drifts does it to all of them; what counts is the median, and the ratio of
// the medians.
//
//   Paired paired({.rounds = 9});
//   paired.Add("map", 100'000, [&](std::uint64_t n) { ... n operations ... });
//   paired.Add("store", 100'000, [&](std::uint64_t n) { ... });
//   paired.Run();
//   paired.Print("map");            ns an operation, M/s, and how many times as fast as "map"
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace sluice::bench {

class Paired {
 public:
  struct Options {
    int rounds = 9;  // at least 7 for a figure that is quoted; one more is run first, uncounted
  };

  explicit Paired(Options options) : options_(options) {}

  // `run(n)` does n operations. What it must prepare it has prepared before.
  void Add(std::string name, std::uint64_t operations, std::function<void(std::uint64_t)> run) {
    contestants_.push_back({std::move(name), operations, std::move(run), {}});
  }

  void Run() {
    for (int round = -1; round < options_.rounds; ++round) {
      for (std::size_t turn = 0; turn < contestants_.size(); ++turn) {
        // The order rotates, so that nobody always runs in another's heat.
        const std::size_t offset = static_cast<std::size_t>(round + 1);
        Contestant& contestant = contestants_[(turn + offset) % contestants_.size()];
        const double ns = TimeOne(contestant);
        if (round >= 0) contestant.ns.push_back(ns);
      }
    }
  }

  // The median of nanoseconds an operation.
  [[nodiscard]] double MedianOf(const std::string& name) const {
    for (const Contestant& contestant : contestants_) {
      if (contestant.name == name) return Median(contestant.ns);
    }
    return 0;
  }

  void Print(const std::string& baseline) const {
    const double base = MedianOf(baseline);
    std::printf("%-52s %9s %8s %19s %8s\n", "", "ns median", "M/s", "ns min - max", "x base");
    for (const Contestant& contestant : contestants_) {
      const double median = Median(contestant.ns);
      const auto [low, high] = std::minmax_element(contestant.ns.begin(), contestant.ns.end());
      std::printf("%-52s %9.1f %8.2f %9.1f - %7.1f %8.2f\n", contestant.name.c_str(), median,
                  1e3 / median, *low, *high, base / median);
    }
    std::fflush(stdout);
  }

 private:
  struct Contestant {
    std::string name;
    std::uint64_t operations;
    std::function<void(std::uint64_t)> run;
    std::vector<double> ns;
  };

  static double TimeOne(const Contestant& contestant) {
    const auto start = std::chrono::steady_clock::now();
    contestant.run(contestant.operations);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    return took.count() / static_cast<double>(contestant.operations);
  }

  static double Median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
  }

  Options options_;
  std::vector<Contestant> contestants_;
};

}  // namespace sluice::bench
