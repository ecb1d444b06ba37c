#include "sluice/config/access_log.h"

#include <array>
#include <cstdint>

#include "sluice/config/settings_reader.h"

namespace sluice::config {

AccessLogSettings ReadAccessLog(const Value& value, const std::string& base_dir) {
  static constexpr std::array<Value::Word<AccessForm>, 2> kForms = {
      {{"combined", AccessForm::kCombined}, {"json", AccessForm::kJson}}};
  constexpr std::int64_t kLeast = 256 << 10;  // room for any one line
  constexpr std::int64_t kMost = 1 << 30;
  AccessLogSettings log;
  log.on = true;
  Fields fields(value.node(), "`access_log`", value.diagnostics());
  const auto file = fields.Require("file", "write `file: stdout` or a path");
  if (const auto text = file ? file->Text() : std::nullopt; text && *text != "stdout") {
    log.file = PathFrom(base_dir, *text);
  }
  if (const auto form = fields.Take("format")) log.form = form->OneOf(kForms).value_or(log.form);
  if (const auto query = fields.Take("query")) log.query = query->Bool().value_or(false);
  if (const auto buffer = fields.Take("buffer")) {
    log.buffer_bytes = static_cast<std::uint64_t>(
        buffer->Bytes(kLeast, kMost).value_or(static_cast<std::int64_t>(log.buffer_bytes)));
  }
  fields.Finish();
  return log;
}

}  // namespace sluice::config
