// The one place that knows every part: builds, starts, drains and reloads them.
//
//   config file ──> Config ──┬─> MemoryStore, SystemClock, Metrics        one of each
//                            ├─> RedisStore (store.redis)                 one for each event loop
//                            ├─> Limiter, ThreadMetrics                   one for each event loop
//                            ├─> gateway                                  on every loop
//                            └─> admin port                               on a loop of its own
//
// Reload: the file is read again by the same code, and so are the certificates' files. When it has
// an error, names an upstream that cannot be found, or a certificate cannot be used, everything
// stays as it is. Else each loop gets the new rules
// and the gateway's new settings by a posted task; requests that are under way end under those that
// they met. What belongs to a port, to the store or to the number of threads takes effect at the
// next start; the log says so when it changed.
//
// Thread-safety: one call at a time, from threads that are none of the loops'.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "sluice/base/time.h"
#include "sluice/config/config.h"
#include "sluice/config/load.h"
#include "sluice/net/address.h"
#include "sluice/transport/gateway/name_lookup.h"

namespace sluice {

class Server {
 public:
  // Reads the configuration anew; the argument is the generation that its rules get.
  using Loader = std::function<config::LoadResult(std::uint64_t generation)>;

  // Starts everything that `config` names; doors are open when it returns. `reload` is kept for
  // Reload(). `resolve` finds the upstreams; what it uses it must own (name_lookup.h). May wait for
  // the shared store (connect_wait) and for name servers, until `stop` is asked for. Errors: what
  // could not be opened, with its address or file; Cancelled.
  static absl::StatusOr<std::unique_ptr<Server>> Start(config::Config config, Loader reload,
                                                       gateway::Resolver resolve = net::Resolve,
                                                       const std::stop_token& stop = {});
  ~Server();  // as Stop()

  // True when the new configuration is in force; else the log has said why not. Waits for new
  // names of upstreams, for at most gateway::Gateway::kLookUpWithin, or until `stop` is asked for,
  // from any thread: then it fails. All else goes on meanwhile.
  bool Reload(std::stop_token stop = {});

  // Not ready from now on: /readyz and the gateway's health path say 503, while everything is still
  // served. Returns for how long it should be left so before Stop() (gateway.drain_delay).
  Duration Leave();

  // Not ready, accepts nothing new, lets what is in flight end for at most the drain time, writes
  // the snapshot, ends the threads. False: the snapshot could not be written, which the log has
  // told. Does nothing a second time.
  bool Stop();

  // Where the doors listen: "127.0.0.1:8080"; empty when there is no such door.
  [[nodiscard]] std::string gateway_address() const;
  [[nodiscard]] std::string admin_address() const;

 private:
  class Parts;
  explicit Server(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice
