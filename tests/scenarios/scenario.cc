#include "tests/scenarios/scenario.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "absl/strings/str_split.h"

namespace sluice::testing {
namespace {

[[noreturn]] void Fail(const std::string& path, int line, const std::string& what) {
  std::cerr << path << ":" << line << ": " << what << "\n";
  std::exit(1);
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(std::move(word));
  return words;
}

bool IsMethod(const std::string& word) {
  return std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

// One line behind the `---`, without its comment.
class StepReader {
 public:
  StepReader(const std::string& path, int line) : path_(path), line_(line) {}

  Step Read(const std::string& text) {
    step_.line = line_;
    std::vector<std::string> words = Words(text);
    if (words.front().starts_with("+")) {
      step_.wait = DurationOf(words.front().substr(1));
      words.erase(words.begin());
      if (words.empty()) Complain("a wait needs a step behind it");
    }
    if (words[0] == "clock" || words[0] == "finish" || words[0] == "undo") {
      ReadCommand(words);
    } else {
      ReadRequest(words);
    }
    return step_;
  }

 private:
  [[noreturn]] void Complain(const std::string& what) const { Fail(path_, line_, what); }

  Duration DurationOf(const std::string& text) const {
    const auto parsed = ParseDuration(text);
    if (!parsed) Complain("not a duration: " + text);
    return *parsed;
  }

  void ReadCommand(const std::vector<std::string>& words) {
    if (words.size() != 2) Complain(words[0] + " takes one word");
    if (words[0] == "clock") {
      step_.kind = Step::Kind::kClock;
      const Duration by = DurationOf(words[1].substr(1));
      step_.wait = words[1][0] == '-' ? -by : by;
      return;
    }
    step_.kind = words[0] == "finish" ? Step::Kind::kFinish : Step::Kind::kUndo;
    step_.name = words[1];
  }

  void ReadRequest(const std::vector<std::string>& words) {
    const auto arrow = std::find(words.begin(), words.end(), "->");
    if (arrow == words.end() || arrow + 1 == words.end()) Complain("a request needs `-> ANSWER`");
    for (auto word = words.begin(); word != arrow; ++word) {
      if (*word == "as") {
        step_.name = *++word;
      } else if (IsMethod(*word)) {
        step_.method = *word;
      } else if (word->front() == '/') {
        step_.target = *word;
      } else if (word->front() == 'x' && word->find('=') == word->npos) {
        step_.times = std::atoi(word->c_str() + 1);
      } else {
        step_.attributes.push_back(Pair(*word));
      }
    }
    step_.answer = *(arrow + 1);
    for (auto word = arrow + 2; word != words.end(); ++word) step_.expected.insert(Pair(*word));
  }

  std::pair<std::string, std::string> Pair(const std::string& word) const {
    const std::size_t equals = word.find('=');
    if (equals == word.npos) Complain("not name=value: " + word);
    return {word.substr(0, equals), word.substr(equals + 1)};
  }

  const std::string& path_;
  const int line_;
  Step step_;
};

}  // namespace

std::optional<Duration> ParseDuration(std::string_view text) {
  static constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {{"ns", 1},
                                                                         {"us", 1'000},
                                                                         {"ms", 1'000'000},
                                                                         {"min", 60'000'000'000},
                                                                         {"s", 1'000'000'000},
                                                                         {"h", 3'600'000'000'000},
                                                                         {"d", 86'400'000'000'000}};
  Duration sum{0};
  bool any = false;
  while (!text.empty()) {
    std::int64_t number = 0;
    std::size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
      number = number * 10 + (text[digits++] - '0');
    }
    text.remove_prefix(digits);
    const auto unit = std::find_if(std::begin(kUnits), std::end(kUnits), [text](const auto& known) {
      return text.starts_with(known.first);
    });
    if (digits == 0 || unit == std::end(kUnits)) return std::nullopt;
    sum += Duration{number * unit->second};
    text.remove_prefix(unit->first.size());
    any = true;
  }
  if (!any) return std::nullopt;
  return sum;
}

bool Scenario::NeedsEngine() const {
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) {
    return step.kind == Step::Kind::kFinish || step.kind == Step::Kind::kUndo;
  });
}

Scenario ReadScenario(const std::string& path) {
  std::ifstream file(path);
  if (!file) Fail(path, 0, "cannot read");
  Scenario scenario{.path = path, .config = "", .steps = {}};
  bool in_steps = false;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line == "---") {
      in_steps = true;
    } else if (!in_steps) {
      scenario.config += line + "\n";
    } else {
      const std::string text = line.substr(0, line.find('#'));
      if (!Words(text).empty()) scenario.steps.push_back(StepReader(path, number).Read(text));
    }
  }
  if (scenario.steps.empty()) Fail(path, number, "no steps behind `---`");
  return scenario;
}

std::vector<std::string> ScenarioFiles() {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(SLUICE_SOURCE_DIR "/tests/scenarios/files")) {
    if (entry.path().extension() == ".scenario") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace sluice::testing
