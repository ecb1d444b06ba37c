#include "sluice/store/redis/channel.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "sluice/base/random.h"
#include "sluice/base/steady_now.h"
#include "sluice/store/redis/internal/loop_hooks.h"
#include "sluice/store/redis/redis_slots.h"

namespace sluice::redis {
namespace {

// Of the table; no name is empty.
constexpr std::string_view kVersion;

// A new version each time, and never one that was there before: a server that forgot all, and was
// told as much again, must not look as if nothing had changed. Answers 0 when there is no room.
constexpr std::string_view kSetScript = R"(
if ARGV[2] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
elseif redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 and redis.call('HLEN', KEYS[1]) > tonumber(ARGV[5]) then
  return 0
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
redis.call('HSET', KEYS[1], '', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
)";

// Answers id and "name\nwhat it says" of each node that is there.
constexpr std::string_view kBeatScript = R"(
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('HSET', KEYS[2], ARGV[1], string.format('%.0f ', now) .. ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
local all, here = redis.call('HGETALL', KEYS[2]), {}
for i = 1, #all, 2 do
  local at, rest = string.match(all[i + 1], '^(%d+) (.*)$')
  if at and math.abs(now - at) <= tonumber(ARGV[3]) then
    here[#here + 1] = all[i]
    here[#here + 1] = rest
  else
    redis.call('HDEL', KEYS[2], all[i])
  end
end
return here
)";

// The server is left when it says so itself.
constexpr Duration kFindEvery = std::chrono::hours{1};

std::string Milliseconds(Duration length) {
  return absl::StrCat(length / std::chrono::milliseconds{1});
}

std::string RandomId() {
  std::array<std::uint8_t, 8> bytes;
  FillWithRandom(bytes);
  std::string id;
  for (const std::uint8_t byte : bytes) absl::StrAppendFormat(&id, "%02x", byte);
  return id;
}

}  // namespace

class Channel::Core {
 public:
  Core(net::EventLoop& loop, ChannelOptions options)
      : loop_(loop),
        options_(std::move(options)),
        table_key_(absl::StrCat(options_.prefix, ":1:{channel}:table")),
        nodes_key_(absl::StrCat(options_.prefix, ":1:{channel}:nodes")),
        turn_(loop, [this] { OnTurn(); }),
        wake_(loop, [this] { OnWake(); }) {
    options_.connection.reply.bytes = 2 * kMostNames * (kLongestName + kLongestValue);
    options_.connection.on_state = [this](net::RedisState state) {
      if (state == net::RedisState::kReady) OnReady();
    };
    if (!options_.seeds.empty()) {
      options_.connection.find_address =
          [this](Duration, absl::AnyInvocable<void(net::RedisAddresses)> found) {
            Find(std::move(found));
          };
      options_.connection.find_every = kFindEvery;
    }
    Connect();
  }
  // What is told while it ends finds nothing to do.
  ~Core() {
    closing_ = true;
    for (auto& [name, unsent] : std::exchange(unsent_, {}))
      unsent.End(absl::AbortedError("closed"));
  }

  absl::Status Set(std::string_view name, std::string_view value, Done done) {
    if (name.empty() || name.size() > kLongestName || value.size() > kLongestValue) {
      return absl::InvalidArgumentError("a name or a value that the channel does not carry");
    }
    auto found = unsent_.find(name);
    if (found == unsent_.end()) {
      if (unsent_.size() >= kMostUnsent) {
        return absl::ResourceExhaustedError("too many changes wait for the channel");
      }
      found = unsent_.emplace(name, Unsent{}).first;
    }
    if (Done before = std::exchange(found->second.done, std::move(done))) {
      loop_.Post([before = std::move(before)]() mutable {
        before(absl::AbortedError("the name was set anew"));
      });
    }
    found->second.value = value;
    found->second.serial = ++sets_;
    found->second.on_its_way = false;
    turn_.Ask();
    return absl::OkStatus();
  }

  void Say(std::string says) {
    options_.says = std::move(says);
    next_beat_ = Time::min();
    turn_.Ask();
  }

  [[nodiscard]] const std::string& id() const { return id_; }

 private:
  struct Unsent {
    std::string value;
    Done done;
    std::uint64_t serial = 0;
    bool on_its_way = false;

    void End(const absl::Status& status) {
      if (done) done(status);
    }
  };
  using Answer = void (Core::*)(const net::RedisReply& reply);

  void Connect() {
    connection_ = std::make_unique<net::RedisConnection>(loop_, options_.connection);
  }
  void Find(absl::AnyInvocable<void(net::RedisAddresses)> found);
  void OnReady();
  void OnTurn();
  void OnWake();
  void SendUnsent();
  void Poll();
  void Beat();
  void Ask(std::initializer_list<std::string_view> words, Answer answer);
  void OnVersion(const net::RedisReply& reply);
  void OnTable(const net::RedisReply& reply);
  void OnNodes(const net::RedisReply& reply);
  void OnSet(const std::string& name, std::uint64_t serial,
             const absl::StatusOr<net::RedisReply>& reply);
  void OnError(std::string_view error);
  [[nodiscard]] std::string HostOfServer() const {
    return net::ParseHostPort(connection_->server()).value_or(net::HostPort{}).host;
  }
  [[nodiscard]] bool ready() const { return connection_->state() == net::RedisState::kReady; }

  net::EventLoop& loop_;
  ChannelOptions options_;
  const std::string id_ = RandomId();
  const std::string table_key_;
  const std::string nodes_key_;

  bool closing_ = false;
  std::optional<net::HostPort> moved_;   // where to go at the end of this turn
  std::optional<net::HostPort> led_to_;  // with seeds: where that was, the last time
  std::map<std::string, Unsent, std::less<>> unsent_;
  std::uint64_t sets_ = 0;
  std::optional<std::string> version_;  // of the table that was told; nothing: none was
  Table table_;
  std::vector<ChannelNode> nodes_;
  std::string refused_;  // the last words
  bool polling_ = false;
  Time next_beat_ = Time::min();
  TurnEnd turn_;
  Wake wake_;
  std::unique_ptr<net::RedisConnection> connection_;  // last: its callbacks come here
};

// Where MOVED led first, and then the seeds, one for each attempt.
void Channel::Core::Find(absl::AnyInvocable<void(net::RedisAddresses)> found) {
  std::vector<net::HostPort> places = options_.seeds;
  if (led_to_) places.insert(places.begin(), *led_to_);
  loop_.Post([places = std::move(places), found = std::move(found)]() mutable {
    found(std::move(places));
  });
}

void Channel::Core::OnReady() {
  polling_ = false;
  next_beat_ = Time::min();
  for (auto& [name, unsent] : unsent_) unsent.on_its_way = false;
  wake_.At(SteadyNow());
}

void Channel::Core::OnTurn() {
  if (moved_ && !options_.seeds.empty()) {
    led_to_ = std::exchange(moved_, std::nullopt);
    connection_->Renew("the channel's slot is elsewhere");
    return;
  }
  if (moved_) {
    options_.connection.address = *std::exchange(moved_, std::nullopt);
    options_.connection.unix_socket.clear();
    Connect();  // ends the one that there was
    return;
  }
  if (!ready()) return;
  SendUnsent();
  if (next_beat_ <= SteadyNow()) Beat();
}

// Until the connection is lost; then OnReady() begins anew.
void Channel::Core::OnWake() {
  if (!ready()) return;
  SendUnsent();
  Poll();
  const Time now = SteadyNow();
  if (next_beat_ <= now) Beat();
  wake_.At(now + kPollEvery);
}

void Channel::Core::Ask(std::initializer_list<std::string_view> words, Answer answer) {
  std::string bytes;
  net::AppendRedisCommand(words, &bytes);
  (void)connection_->Send(bytes, SteadyNow() + options_.connection.max_silence,
                          [this, answer](const absl::StatusOr<net::RedisReply>& reply) {
                            if (closing_) return;
                            if (!reply.ok()) {
                              polling_ = false;
                            } else if (reply->is_error()) {
                              polling_ = false;
                              OnError(reply->error());
                            } else {
                              (this->*answer)(*reply);
                            }
                          });
}

void Channel::Core::SendUnsent() {
  for (auto& [name, unsent] : unsent_) {
    if (unsent.on_its_way) continue;
    const std::string version = RandomId();
    const std::string kept = Milliseconds(kKept);
    const std::string most = absl::StrCat(kMostNames);
    const std::array<std::string_view, 9> words = {"EVAL",       kSetScript, "1",  table_key_, name,
                                                   unsent.value, version,    kept, most};
    std::string bytes;
    net::AppendRedisCommand(words, &bytes);
    unsent.on_its_way = connection_
                            ->Send(bytes, SteadyNow() + options_.connection.max_silence,
                                   [this, name = name, serial = unsent.serial](
                                       const absl::StatusOr<net::RedisReply>& reply) {
                                     if (!closing_) OnSet(name, serial, reply);
                                   })
                            .ok();
  }
}

void Channel::Core::OnSet(const std::string& name, std::uint64_t serial,
                          const absl::StatusOr<net::RedisReply>& reply) {
  const auto found = unsent_.find(name);
  if (found == unsent_.end() || found->second.serial != serial) return;  // set anew meanwhile
  found->second.on_its_way = false;
  if (!reply.ok()) return;  // again at the next poll
  if (reply->is_error()) return OnError(reply->error());
  Unsent sent = std::move(found->second);
  unsent_.erase(found);
  Poll();  // what this node set it hears as all do
  sent.End(reply->integer() == 1 ? absl::OkStatus()
                                 : absl::ResourceExhaustedError("the channel's table is full"));
}

void Channel::Core::Poll() {
  if (std::exchange(polling_, true)) return;
  Ask({"HGET", table_key_, kVersion}, &Core::OnVersion);
}

void Channel::Core::OnVersion(const net::RedisReply& reply) {
  if (version_ == reply.text()) {
    polling_ = false;
    return;
  }
  Ask({"HGETALL", table_key_}, &Core::OnTable);
}

void Channel::Core::OnTable(const net::RedisReply& reply) {
  polling_ = false;
  Table table;
  std::string version;
  for (std::size_t i = 0; i + 1 < reply.size(); i += 2) {
    if (reply[i].text() == kVersion) {
      version = reply[i + 1].text();
    } else {
      table.emplace(reply[i].text(), reply[i + 1].text());
    }
  }
  const bool first = !std::exchange(version_, version).has_value();
  if (!first && table == table_) return;
  table_ = std::move(table);
  if (options_.on_table) options_.on_table(table_);
}

void Channel::Core::Beat() {
  next_beat_ = SteadyNow() + options_.beat_every;
  Ask({"EVAL", kBeatScript, "2", table_key_, nodes_key_, id_,
       absl::StrCat(options_.node, "\n", options_.says), Milliseconds(options_.gone_after),
       Milliseconds(kKept)},
      &Core::OnNodes);
}

void Channel::Core::OnNodes(const net::RedisReply& reply) {
  std::vector<ChannelNode> nodes;
  for (std::size_t i = 0; i + 1 < reply.size(); i += 2) {
    const std::string_view told = reply[i + 1].text();
    const std::size_t line = std::min(told.find('\n'), told.size());
    nodes.push_back({.id = std::string(reply[i].text()),
                     .name = std::string(told.substr(0, line)),
                     .says = std::string(told.substr(std::min(line + 1, told.size())))});
  }
  std::ranges::sort(nodes, {}, &ChannelNode::id);
  if (nodes == nodes_) return;
  nodes_ = std::move(nodes);
  if (options_.on_nodes) options_.on_nodes(nodes_);
}

// What the server refuses is asked again at the next poll; a server that is the wrong one is left.
void Channel::Core::OnError(std::string_view error) {
  if (const auto redirect = ReadRedirect(error);
      redirect && redirect->kind == Redirect::Kind::kMoved) {
    moved_ = redirect->to;
    if (moved_->host.empty()) moved_->host = HostOfServer();
    return turn_.Ask();
  }
  if (refused_ != error) {
    refused_ = error;
    if (options_.on_refused) options_.on_refused(refused_);
  }
  if (error.starts_with("READONLY") || error.starts_with("MASTERDOWN")) {
    connection_->Renew(error);
  }
}

Channel::Channel(net::EventLoop& loop, ChannelOptions options)
    : core_(std::make_unique<Core>(loop, std::move(options))) {}

Channel::~Channel() = default;

absl::Status Channel::Set(std::string_view name, std::string_view value, Done done) {
  return core_->Set(name, value, std::move(done));
}
void Channel::Say(std::string says) { core_->Say(std::move(says)); }
const std::string& Channel::id() const { return core_->id(); }

}  // namespace sluice::redis
