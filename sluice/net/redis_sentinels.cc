#include "sluice/net/redis_sentinels.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "sluice/base/steady_now.h"

namespace sluice::net {
namespace {

constexpr std::size_t kLongestHost = 255;
constexpr std::size_t kMostWaiting = 64;  // questions to one sentinel

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

absl::StatusOr<std::uint16_t> PortIn(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || port == 0) return absl::UnavailableError("tells a port that is none");
  return port;
}

// Of SENTINEL GET-MASTER-ADDR-BY-NAME: nil, or a host and a port.
absl::StatusOr<HostPort> AddressIn(RedisValue reply) {
  if (reply.is_error()) return absl::UnavailableError(Absl(reply.error()));
  if (reply.kind() == RedisKind::kNil) return absl::UnavailableError("knows no such master");
  if (reply.size() != 2) return absl::UnavailableError("answers with what is no address");
  const std::string_view host = reply[0].text();
  const bool plain = std::ranges::all_of(host, [](char c) { return c > ' ' && c <= '~'; });
  if (host.empty() || host.size() > kLongestHost || !plain) {
    return absl::UnavailableError("tells a host that is none");
  }
  const absl::StatusOr<std::uint16_t> port = PortIn(reply[1].text());
  if (!port.ok()) return port.status();
  return HostPort{std::string(host), *port};
}

}  // namespace

// One question to all of them. Owned by whoever may still answer, and needs nobody else.
class RedisSentinels::Round {
 public:
  Round(std::shared_ptr<const RedisSentinelsOptions> options, Found found)
      : options_(std::move(options)), due_(options_->nodes.size()), found_(std::move(found)) {}

  void Add(std::size_t sentinel, const absl::StatusOr<RedisReply>& reply) {
    if (!found_) return;  // it is known already
    absl::StatusOr<HostPort> address =
        reply.ok() ? AddressIn(*reply) : absl::StatusOr<HostPort>(reply.status());
    --due_;
    if (address.ok()) {
      Count(*std::move(address));
    } else {
      Note(ToString(options_->nodes[sentinel]), address.status().message());
    }
    if (due_ == 0 || most_ > options_->nodes.size() / 2) Tell();
  }

 private:
  struct Named {
    HostPort address;
    std::size_t by = 0;  // so many
  };

  void Count(HostPort address) {
    auto named = std::ranges::find(named_, address, &Named::address);
    if (named == named_.end()) named = named_.insert(named_.end(), {std::move(address)});
    most_ = std::max(most_, ++named->by);
  }

  void Note(const std::string& sentinel, absl::string_view why) {
    (void)absl::ConsumePrefix(&why, absl::StrCat("redis ", sentinel, ": "));
    absl::StrAppend(&why_, why_.empty() ? "" : "; ", sentinel, ": ", why);
  }

  void Tell() {
    Found found = std::exchange(found_, nullptr);
    if (named_.empty()) {
      return found(absl::UnavailableError(
          absl::StrCat("no sentinel says where `", options_->master, "` is: ", why_)));
    }
    std::vector<HostPort> addresses;
    for (Named& named : named_) {
      if (named.by == most_) addresses.push_back(std::move(named.address));
    }
    found(std::move(addresses));
  }

  const std::shared_ptr<const RedisSentinelsOptions> options_;
  std::size_t due_;
  Found found_;  // null: told
  std::vector<Named> named_;
  std::size_t most_ = 0;  // of Named::by
  std::string why_;       // of those that did not say
};

RedisSentinels::RedisSentinels(EventLoop& loop, RedisSentinelsOptions options)
    : loop_(loop), options_(std::make_shared<const RedisSentinelsOptions>(std::move(options))) {
  const std::array<std::string_view, 3> words = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME",
                                                 options_->master};
  AppendRedisCommand(words, &question_);
  for (const HostPort& node : options_->nodes) {
    RedisConnectionOptions connection{.address = node, .tls = options_->tls};
    connection.user = options_->user;
    connection.password = options_->password;
    connection.max_waiting = kMostWaiting;
    connection.connect_timeout = options_->connect_timeout;
    connection.jitter = options_->jitter;
    sentinels_.push_back(std::make_unique<RedisConnection>(loop, std::move(connection)));
  }
}

// NOLINTNEXTLINE(bugprone-exception-escape): we throw nothing, nor may a callback
RedisSentinels::~RedisSentinels() { sentinels_.clear(); }

void RedisSentinels::Find(Duration patience, Found found) {
  const auto round = std::make_shared<Round>(options_, std::move(found));
  const Time deadline = SteadyNow() + patience;
  for (std::size_t i = 0; i < sentinels_.size(); ++i) {
    const absl::Status sent = sentinels_[i]->Send(
        question_, deadline,
        [round, i](const absl::StatusOr<RedisReply>& reply) { round->Add(i, reply); });
    if (!sent.ok()) loop_.Post([round, i, sent] { round->Add(i, sent); });
  }
}

std::function<void(Duration, RedisSentinels::Found)> RedisSentinels::Finder(
    std::shared_ptr<RedisSentinels> sentinels) {
  return [sentinels = std::move(sentinels)](Duration patience, Found found) {
    sentinels->Find(patience, std::move(found));
  };
}

}  // namespace sluice::net
