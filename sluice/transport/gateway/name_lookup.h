// Looks up several names at once, for a start or a reload, within a bound.
//
//   name ── a thread ── resolve ─┐
//   name ── a thread ── resolve ─┼─> all found, or the first error, or the bound, or `stop`
//   address ─────────────────────┘
//
// A resolver blocks for as long as it likes, up to half a minute where a name server is gone; side
// by side, many names wait no longer than one. Who still hangs when the answer is known is left
// behind and ends by itself.
#pragma once

#include <functional>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/base/time.h"
#include "sluice/net/address.h"
#include "sluice/transport/gateway/upstream.h"

namespace sluice::gateway {

// Finds what a name stands for. May block; errors as net::Resolve. Called from any thread, from
// several at once. One that hangs is left behind: it may still run, and its copy be destroyed, when
// whoever was given it is gone, so it must own what it uses.
using Resolver = std::function<absl::StatusOr<Endpoints>(const net::HostPort&)>;

// What each of `names` stands for, in their order. Takes no longer than `within`, and ends at once
// when `stop` is asked for. Errors: as the resolver's; kDeadlineExceeded, with the name;
// kCancelled; kResourceExhausted when there is no thread to be had.
[[nodiscard]] absl::StatusOr<std::vector<Endpoints>> LookUp(const std::vector<net::HostPort>& names,
                                                            const Resolver& resolve,
                                                            Duration within, std::stop_token stop);

}  // namespace sluice::gateway
