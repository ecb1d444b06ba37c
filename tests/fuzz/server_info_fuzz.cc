// What a Redis server says of itself. What is told of it is printable, and short: it is logged.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sluice/store/redis/server_report.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void RequireLine(std::string_view line) {
  Require(line.size() < 600);
  for (const char c : line) Require(c >= ' ' && c <= '~');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  sluice::redis::ServerFacts facts;
  sluice::redis::ReadInfo(text, &facts);
  for (const std::string_view name : {"min-replicas-to-write", "save"}) {
    sluice::redis::ReadConfig(name, text, &facts);
  }
  const sluice::redis::ServerReport report = sluice::redis::ReportOf(facts);
  RequireLine(report.facts);
  for (const std::string_view warning : report.warnings) RequireLine(warning);
  return 0;
}
