// "Did you mean": the known name that a mistyped one was probably meant to be.
//
// Counts the keystrokes between the two: letters added, left out, changed, or swapped with their
// neighbour (optimal string alignment). Case, and `-` for `_`, count as nothing. More than a third
// of the letters wrong is another word, and no suggestion is better than a wild one.
//
// Cost: |given| x |known| for each known name. For error messages, not for requests.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace sluice {

// The first of the closest in `known`; nullopt when none is close. The view is the one in `known`.
std::optional<std::string_view> ClosestName(std::string_view given,
                                            std::span<const std::string_view> known);

}  // namespace sluice
