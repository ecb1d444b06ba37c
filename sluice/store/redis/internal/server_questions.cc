#include "sluice/store/redis/internal/server_questions.h"

#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "sluice/base/steady_now.h"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;

constexpr Duration kDeadline = 10s;

std::int64_t Number(std::string_view text) {
  std::int64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void ReadInfoReply(const net::RedisValue& reply, ServerFacts* facts) {
  ReadInfo(reply.text(), facts);
}

void ReadConfigReply(const net::RedisValue& reply, ServerFacts* facts) {
  for (std::size_t i = 0; i + 1 < reply.size(); i += 2) {
    ReadConfig(reply[i].text(), reply[i + 1].text(), facts);
  }
}

}  // namespace

void ServerQuestions::Ask() {
  if (!on_report_) return;
  const auto round = std::make_shared<Round>();
  round->facts.as_one_of_several = parts_.redirects != nullptr;
  Send(round, "INFO", [](const net::RedisValue& reply, const StoreParts&, Round& asked) {
    ReadInfoReply(reply, &asked.facts);
  });
  for (const std::string_view name : {"CONFIG GET min-replicas-to-write", "CONFIG GET save"}) {
    Send(round, name, [](const net::RedisValue& reply, const StoreParts&, Round& asked) {
      ReadConfigReply(reply, &asked.facts);
    });
  }
  round->asked = parts_.clock.Read();
  Send(round, "TIME", [](const net::RedisValue& reply, const StoreParts& parts, Round& asked) {
    if (reply.size() != 2) return;
    // As if it had been read halfway between question and answer.
    const Now now = parts.clock.Read();
    const WallTime between = asked.asked.wall + (now.wall - asked.asked.wall) / 2;
    const WallTime server{std::chrono::seconds{Number(reply[0].text())} +
                          std::chrono::microseconds{Number(reply[1].text())}};
    asked.facts.clock_ahead = server - between;
  });
}

// `command` is a constant.
void ServerQuestions::Send(const std::shared_ptr<Round>& round, std::string_view command,
                           Read read) {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(command.data(), command.size()), ' ');
  const std::vector<std::string_view> words(parts.begin(), parts.end());
  std::string bytes;
  net::AppendRedisCommand(words, &bytes);
  const absl::Status sent = parts_.link.Send(
      bytes, SteadyNow() + kDeadline,
      [this, round, read,
       name = command.substr(0, command.find(' '))](const absl::StatusOr<net::RedisReply>& reply) {
        if (!reply.ok()) return;
        if (reply->is_error()) {
          std::string refused = std::string(name) + ": " + std::string(reply->error());
          std::vector<std::string>& told = round->facts.refused;
          if (told.empty() || told.back() != refused) told.push_back(std::move(refused));
        } else {
          read(*reply, parts_, *round);
        }
        if (--round->due > 0) return;
        ServerReport report = ReportOf(round->facts);
        report.server = parts_.link.server();
        on_report_(report);
      });
  if (sent.ok()) ++round->due;
}

}  // namespace sluice::redis
