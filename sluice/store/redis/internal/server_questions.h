// Asks a server what it is like, once for each connection, behind all that matters more. It needs
// no permission: what is refused is told as such.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "sluice/base/time.h"
#include "sluice/net/redis_reply.h"
#include "sluice/store/redis/internal/store_parts.h"
#include "sluice/store/redis/server_report.h"

namespace sluice::redis {

class ServerQuestions {
 public:
  using OnReport = std::function<void(const ServerReport&)>;

  ServerQuestions(const StoreParts& parts, OnReport on_report)
      : parts_(parts), on_report_(std::move(on_report)) {}

  // The report comes when all is answered; never if the connection is lost before.
  void Ask();

 private:
  // One round of them.
  struct Round {
    ServerFacts facts;
    std::size_t due = 0;  // answers
    Now asked;
  };
  using Read = void (*)(const net::RedisValue& reply, const StoreParts& parts, Round& round);

  void Send(const std::shared_ptr<Round>& round, std::string_view command, Read read);

  const StoreParts parts_;
  const OnReport on_report_;
};

}  // namespace sluice::redis
