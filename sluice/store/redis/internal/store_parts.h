// What the parts of the store around one server share. All of it outlives them.
#pragma once

#include "sluice/base/clock.h"
#include "sluice/store/redis/internal/loop_hooks.h"
#include "sluice/store/redis/internal/script_link.h"
#include "sluice/store/redis/key_name.h"
#include "sluice/store/redis/redis_counters.h"
#include "sluice/store/redis/script_call.h"

namespace sluice::redis {

class Redirects;
class WaitingGroups;

struct StoreParts {
  const Clock& clock;  // for its wall time, which the server's is compared with
  const KeyOptions& keys;
  ScriptCall& script;
  RedisCounters& counters;
  TurnEnd& turn;  // at which what waits is sent
  WaitingGroups& groups;
  Redirects* redirects;  // null: the server is in no cluster
  ScriptLink& link;      // made last, and gone first: it tells what is on its way
};

}  // namespace sluice::redis
