// Who listens to decisions: metrics, decision log, top consumers.
#pragma once

#include "sluice/limiter/outcome.h"
#include "sluice/rule/request.h"

namespace sluice {

class Observer {
 public:
  virtual ~Observer() = default;

  // Called once for each decision, on the thread that decided, before the door is answered. Takes
  // no lock and allocates nothing; whoever has more to do hands it to another thread.
  virtual void OnDecision(const LimitRequest& request, const Outcome& outcome) noexcept = 0;
};

}  // namespace sluice
