#include "sluice/net/internal/redis_greeting.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace sluice::net::internal {
namespace {

constexpr std::size_t kLongestRole = 32;

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

// "master" is the server's word for a primary, "slave" for a replica.
absl::Status CheckRole(RedisValue reply) {
  const std::string_view role = reply[0].text();
  if (role == "master") return absl::OkStatus();
  if (role == "slave") return absl::UnavailableError("the server is a replica");
  return absl::UnavailableError(absl::StrCat("the server is no primary; its role is '",
                                             absl::CHexEscape(Absl(role.substr(0, kLongestRole))),
                                             "'"));
}

}  // namespace

RedisGreeting::RedisGreeting(const Options& options) {
  if (!options.user.empty()) {
    Add(Step::kAuth, {"AUTH", options.user, options.password});
  } else if (!options.password.empty()) {
    Add(Step::kAuth, {"AUTH", options.password});
  }
  if (options.database != 0) Add(Step::kSelect, {"SELECT", std::to_string(options.database)});
  if (!options.client_name.empty()) {
    Add(Step::kSetName, {"CLIENT", "SETNAME", options.client_name});
  }
  Add(Step::kPing, {"PING"});
  if (options.primary) Add(Step::kRole, {"ROLE"});
}

void RedisGreeting::Add(Step step, std::initializer_list<std::string_view> words) {
  steps_.push_back(step);
  AppendRedisCommand({words.begin(), words.size()}, &bytes_);
}

absl::Status RedisGreeting::Answer(RedisValue reply) {
  const Step step = steps_[answered_++];
  if (!reply.is_error()) return step == Step::kRole ? CheckRole(reply) : absl::OkStatus();
  const std::string_view code = reply.error_code();
  // A user who may do nothing but run our scripts will do, and so will a connection without a name.
  const bool by_the_way = step == Step::kSetName || step == Step::kPing;
  if (by_the_way && code == "NOPERM") return absl::OkStatus();
  // Said to whatever comes first.
  const bool no_room = reply.error().starts_with("ERR max number of clients");
  if (no_room) return absl::UnavailableError(Absl(reply.error()));
  if (step == Step::kSetName && code == "ERR") return absl::OkStatus();

  // "ERR unknown command 'AUTH', with args beginning with: ..." says what it should not.
  if (step == Step::kAuth && code == "ERR") {
    return absl::UnavailableError(
        "ERR: the server refuses AUTH; it knows no such users or passwords");
  }
  const std::string_view command = step == Step::kAuth      ? "AUTH"
                                   : step == Step::kSelect  ? "SELECT"
                                   : step == Step::kSetName ? "CLIENT SETNAME"
                                   : step == Step::kRole    ? "ROLE"
                                                            : "PING";
  return absl::UnavailableError(absl::StrCat(Absl(reply.error()), " (to ", Absl(command), ")"));
}

}  // namespace sluice::net::internal
