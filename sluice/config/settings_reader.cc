#include "sluice/config/settings_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "sluice/config/endpoint_reader.h"
#include "sluice/config/gateway_reader.h"
#include "sluice/config/redis_reader.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLongest = 24h;  // of a length of time

void ReadAdmin(const Value& value, Config& config) {
  AdminSettings admin;
  Fields fields(value.node(), "`admin`", value.diagnostics());
  ReadListen(fields, admin.listen);
  fields.Later({"tls", "token_file"});
  fields.Finish();
  config.admin = std::move(admin);
}

void ReadBound(Fields& fields, std::string_view name, std::int64_t min, std::int64_t max,
               std::uint64_t& bound) {
  if (const auto value = fields.Take(name)) {
    bound = static_cast<std::uint64_t>(
        value->Integer(min, max).value_or(static_cast<std::int64_t>(bound)));
  }
}

void ReadByteBound(Fields& fields, std::string_view name, std::int64_t min, std::int64_t max,
                   std::uint64_t& bound) {
  if (const auto value = fields.Take(name)) {
    bound = static_cast<std::uint64_t>(
        value->Bytes(min, max).value_or(static_cast<std::int64_t>(bound)));
  }
}

void ReadMemory(const Value& value, const std::string& base_dir, MemorySettings& memory) {
  Fields fields(value.node(), "`memory`", value.diagnostics());
  ReadBound(fields, "max_keys", 1, std::int64_t{1} << 30, memory.max_keys);
  if (const auto snapshot = fields.Take("snapshot")) {
    if (const auto path = snapshot->Text()) memory.snapshot = PathFrom(base_dir, *path);
  }
  if (const auto every = fields.Take("snapshot_every")) {
    memory.snapshot_every = every->Length(1s, kLongest).value_or(memory.snapshot_every);
    if (memory.snapshot.empty()) every->Complain("means nothing without `snapshot`");
  }
  fields.Finish();
}

void ReadStore(const Value& value, const std::string& base_dir, Config& config) {
  Fields fields(value.node(), "`store`", value.diagnostics());
  if (const auto memory = fields.Take("memory")) ReadMemory(*memory, base_dir, config.memory);
  if (const auto redis = fields.Take("redis")) config.redis = ReadRedis(*redis, base_dir);
  fields.Finish();
}

void ReadBounds(const Value& value, Bounds& bounds) {
  Fields fields(value.node(), "`limits`", value.diagnostics());
  ReadBound(fields, "connections", 1, 10'000'000, bounds.connections);
  // So that no client can keep all others out.
  bounds.connections_per_client = std::max<std::uint64_t>(1, bounds.connections / 2);
  ReadBound(fields, "connections_per_client", 1, 10'000'000, bounds.connections_per_client);
  if (bounds.connections_per_client > bounds.connections) {
    value.diagnostics().Warning(
        value.node().Find("connections_per_client")->location,
        fmt::format("`connections_per_client` has no effect: there are at most {} connections",
                    bounds.connections),
        "so one client can keep all others out; by default it has half of them");
  }
  ReadBound(fields, "upstream_connections", 1, 1'000'000, bounds.upstream_connections);
  ReadBound(fields, "idle_upstream_connections", 0, 1'000'000, bounds.idle_upstream_connections);
  ReadByteBound(fields, "header_bytes", 1024, 1 << 20, bounds.header_bytes);
  ReadBound(fields, "header_fields", 1, 10'000, bounds.header_fields);
  ReadByteBound(fields, "body_bytes", 1, std::int64_t{1} << 60, bounds.body_bytes);
  ReadByteBound(fields, "outside_bytes", 0, std::int64_t{1} << 38, bounds.outside_bytes);
  ReadBound(fields, "slots", 0, std::int64_t{1} << 26, bounds.slots);
  ReadBound(fields, "waiting_for_store", 1, std::int64_t{1} << 20, bounds.waiting_for_store);
  ReadBound(fields, "remembered_denials", 0, std::int64_t{1} << 26, bounds.remembered_denials);
  ReadBound(fields, "leased_keys", 0, std::int64_t{1} << 20, bounds.leased_keys);
  fields.Finish();
}

void ReadLog(const Value& value, LogSettings& log) {
  static constexpr std::array<Value::Word<log::Level>, 5> kLevels = {
      {{"debug", log::Level::kDebug},
       {"info", log::Level::kInfo},
       {"warning", log::Level::kWarning},
       {"error", log::Level::kError},
       {"off", log::Level::kOff}}};
  static constexpr std::array<Value::Word<log::Format>, 2> kFormats = {
      {{"human", log::Format::kText}, {"json", log::Format::kJson}}};
  Fields fields(value.node(), "`log`", value.diagnostics());
  if (const auto level = fields.Take("level")) {
    log.level = level->OneOf(kLevels).value_or(log.level);
  }
  if (const auto format = fields.Take("format")) {
    log.format = format->OneOf(kFormats).value_or(log.format);
  }
  fields.Finish();
}

// A word of `headers`. Those with one `field` write it in different ways.
struct Dialect {
  std::string_view word;
  bool HeaderSettings::*setting = nullptr;
  std::string_view field;
};
constexpr std::array<Dialect, 6> kDialects = {
    {{"draft-11", &HeaderSettings::draft_11, "RateLimit"},
     {"draft-07", &HeaderSettings::draft_07, "RateLimit"},
     {"draft-06", &HeaderSettings::draft_06, "RateLimit-Limit"},
     {"envoy", &HeaderSettings::envoy, "X-RateLimit-Limit"},
     {"x-delta", &HeaderSettings::x_delta, "X-RateLimit-Limit"},
     {"x-epoch", &HeaderSettings::x_epoch, "X-RateLimit-Limit"}}};

void ReadHeaders(const Value& value, HeaderSettings& headers) {
  static constexpr auto kWords = [] {
    std::array<Value::Word<const Dialect*>, kDialects.size() + 1> words{};
    for (std::size_t i = 0; i < kDialects.size(); ++i) {
      words[i] = {kDialects[i].word, &kDialects[i]};
    }
    words.back() = {"none", nullptr};
    return words;
  }();
  headers = {.draft_11 = false};
  bool none = false;
  std::vector<const Dialect*> chosen;
  for (const Value& item : value.Items()) {
    const auto word = item.OneOf(kWords);
    if (!word) continue;
    if (*word == nullptr) {
      none = true;
      continue;
    }
    const Dialect& dialect = **word;
    const auto rival = std::find_if(chosen.begin(), chosen.end(), [&](const Dialect* other) {
      return other->field == dialect.field;
    });
    if (rival == chosen.end()) {
      headers.*dialect.setting = true;
      chosen.push_back(&dialect);
    } else if (*rival == &dialect) {
      item.Complain(fmt::format("has {} twice", Quoted(dialect.word)));
    } else {
      item.Complain(fmt::format("has {} beside {}, and each writes `{}` in its own way",
                                Quoted(dialect.word), Quoted((*rival)->word), dialect.field),
                    "leave one of the two out");
    }
  }
  if (none && !chosen.empty()) {
    value.Complain("has `none` beside others", "leave one of the two out");
  }
}

}  // namespace

std::string PathFrom(const std::string& base_dir, std::string_view path) {
  return (std::filesystem::path(base_dir) / std::filesystem::path(path))
      .lexically_normal()
      .string();
}

void ReadSettings(Fields& root, const std::string& base_dir, Config& config) {
  if (const auto value = root.Take("gateway")) ReadGateway(*value, base_dir, config);
  if (const auto value = root.Take("admin")) ReadAdmin(*value, config);
  if (const auto value = root.Take("store")) ReadStore(*value, base_dir, config);
  if (const auto value = root.Take("limits")) ReadBounds(*value, config.bounds);
  if (const auto value = root.Take("log")) ReadLog(*value, config.log);
  if (const auto value = root.Take("headers")) ReadHeaders(*value, config.headers);
  static constexpr std::array<Value::Word<BodyForm>, 2> kBodies = {
      {{"problem", BodyForm::kProblem}, {"json", BodyForm::kJson}}};
  if (const auto value = root.Take("body")) {
    config.body = value->OneOf(kBodies).value_or(config.body);
  }
  if (const auto value = root.Take("threads")) {
    config.threads = static_cast<std::uint32_t>(value->Integer(1, 1024).value_or(1));
  }
}

}  // namespace sluice::config
