// Files that hold one secret each: a password, a key.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sluice/config/fields.h"

namespace sluice::config {

// What the file that `value` names holds, without the line end behind it; the path is as seen from
// `base_dir`. Complains at `value` when it cannot be read, is empty, holds more than one line or a
// NUL; never with what it holds. Warns when every user of the machine can read it.
std::optional<std::string> ReadSecretFile(const Value& value, const std::string& base_dir);

// Warns, at `value`, when every user of the machine can read the file at `path`; `written` is the
// path as it stands in the configuration.
void WarnIfAllCanRead(const Value& value, std::string_view written, const std::string& path);

}  // namespace sluice::config
