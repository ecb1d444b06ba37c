// From a file to everything that Sluice needs to know, or to all that is wrong with it.
//
//   file ──> document ──> identities, plans, settings, rules ──> Config
//               └──────────────┴──── complaints ─────────────> Diagnostics
//
// The same code serves the start, a reload and `sluice check`. A file with any error gives no
// Config; warnings do not matter. Reads the file and the plan file that it names; opens no socket.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/config/config.h"
#include "sluice/config/diagnostics.h"

namespace sluice::config {

struct LoadResult {
  std::optional<Config> config;  // exactly when there are no errors
  Diagnostics diagnostics;       // errors and warnings, to be told by Diagnostics::Text()
};

// `generation` is what the rules are counted as: 1 at start, one more with each reload.
LoadResult Load(const std::string& path, std::uint64_t generation);

// The same for text; `name` stands in complaints, files in it are relative to `base_dir`.
LoadResult LoadText(const std::string& name, std::string_view text, const std::string& base_dir,
                    std::uint64_t generation);

}  // namespace sluice::config
