// `gateway: { cors: { origins: [...], preflight: ... } }`: which browsers' scripts may read
// answers.
#pragma once

#include "sluice/config/config.h"
#include "sluice/config/fields.h"

namespace sluice::config {

// Origins are `*` alone, or written as browsers send them: they are compared byte by byte.
[[nodiscard]] CorsSettings ReadCors(const Value& value);

}  // namespace sluice::config
