#include "sluice/store/redis/internal/one_server.h"

#include <utility>

namespace sluice::redis {

OneServer::OneServer(net::EventLoop& loop, const StoreShare& store, OneServerOptions options)
    : on_cluster_down_(std::move(options.on_cluster_down)),
      turn_(loop, [this] { OnTurn(); }),
      parts_{.clock = store.clock,
             .keys = store.keys,
             .script = script_,
             .counters = store.counters,
             .turn = turn_,
             .groups = store.groups,
             .redirects = options.redirects,
             .link = link_},
      give_back_(loop, parts_, options.max_undos_waiting, options.mark_undos),
      questions_(parts_, std::move(options.on_report)),
      guard_(loop, parts_, options.breaker, std::move(options.on_health)),
      calls_(parts_, guard_, give_back_),
      link_(loop, std::move(options.connection), options.script, store.counters, *this) {}

OneServer::~OneServer() { Close(absl::CancelledError("the store is being closed")); }

void OneServer::Close(absl::Status why) {
  link_.Close(std::move(why));
  calls_.FailWaiting(link_.why());
}

void OneServer::OnUsable() {
  guard_.OnUsable();
  questions_.Ask();
  turn_.Ask();
}

void OneServer::OnGone(const absl::Status& why) {
  guard_.OnGone();
  calls_.FailWaiting(why);
}

void OneServer::OnClusterDown() {
  if (on_cluster_down_) on_cluster_down_();
}

// What comes back goes first: it makes room for what is asked.
void OneServer::OnTurn() {
  give_back_.Send();
  if (link_.usable()) calls_.Send();
}

}  // namespace sluice::redis
