// One request as the engine sees it, whatever door it came through: attributes, not a protocol.
// Everything is a view into memory of the door; the engine keeps none of it after the call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sluice/base/ip.h"

namespace sluice {

struct Field {
  std::string_view name;
  std::string_view value;
};

struct LimitRequest {
  std::string_view method;  // "GET"; compared as written (RFC 9110 §9.1)
  // As on the request line: the path with its query, in origin form. Rules see the normalised path
  // (rule/path.h); a door that is handed a path which can't be normalised refuses it before it
  // asks.
  std::string_view target;
  std::string_view host;  // as in Host or :authority; case and port are ignored by rules
  IpAddress peer;  // who holds the connection; whether it speaks for another: client_address.h
  std::span<const Field> headers;     // in the order of the wire, names in any case
  std::span<const Field> attributes;  // what the door knows besides (declared under `attributes`)
  // What the door says that the request costs, in place of every rule's own cost.
  std::optional<std::uint64_t> cost;
  bool look = false;  // decide, charge nothing
  // Not limited at all, as a browser's preflight: only rules with `deny: true` meet it.
  bool exempt = false;
};

}  // namespace sluice
