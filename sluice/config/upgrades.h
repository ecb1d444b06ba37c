// `gateway: { upgrades: [...] }`: to which protocols clients may change a connection.
#pragma once

#include <string>
#include <vector>

#include "sluice/config/fields.h"

namespace sluice::config {

// Names without versions, in lower case; `none` alone gives an empty list. Protocols that carry
// further requests are refused: no rule would see those.
[[nodiscard]] std::vector<std::string> ReadUpgrades(const Value& value);

}  // namespace sluice::config
