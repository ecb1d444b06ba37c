// Who knows the other servers of a cluster, as the parts of one server's store see it: what the
// server would not do is followed to where it says.
#pragma once

#include "sluice/base/time.h"
#include "sluice/store/redis/internal/asked_group.h"
#include "sluice/store/redis/internal/give_back.h"
#include "sluice/store/redis/redis_slots.h"

namespace sluice::redis {

class Redirects {
 public:
  // Of one request, or of what is given back, before it is told so.
  static constexpr int kMost = 5;

  virtual ~Redirects() = default;

  // The server did nothing of it. From here on it is another's, or has ended.
  virtual void Follow(AskedGroup& asked, const Redirect& to, Time now) = 0;
  // Where that leads which is to be given back; null: nowhere, for now.
  virtual GiveBack* Follow(const Redirect& to) = 0;
  // Of the server that has the slot as far as is known; null: none has.
  virtual GiveBack* OwnerOf(std::uint16_t slot) = 0;
};

}  // namespace sluice::redis
