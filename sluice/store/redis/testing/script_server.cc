#include "sluice/store/redis/testing/script_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"

namespace sluice::redis::testing {
namespace {

void ReplaceAll(std::string* text, std::string_view from, std::string_view to) {
  std::size_t count = 0;
  for (std::size_t at = text->find(from); at != std::string::npos;
       at = text->find(from, at + to.size())) {
    text->replace(at, from.size(), to);
    ++count;
  }
  ASSERT_GT(count, 0U) << "the script has no " << from;
}

}  // namespace

std::string ManualScript() {
  std::string source(ScriptSource());
  ReplaceAll(&source, "call('TIME')",
             absl::StrCat("{match(call('GET', '", std::string(kClockKey), "'), '(%d+) (%d+)')}"));
  ReplaceAll(&source, "/ 1000) + 2", "/ 1000) + 86400002");
  return source;
}

std::string ClockText(std::int64_t wall_us) {
  return absl::StrCat(wall_us / 1'000'000, " ", wall_us % 1'000'000);
}

ScriptServer::ScriptServer(Clock clock) : clock_(clock), connection_(server_.unix_socket()) {
  LoadScript();
}

void ScriptServer::LoadScript() {
  const std::string source =
      clock_ == Clock::kManual ? ManualScript() : std::string(ScriptSource());
  sha_ = std::string(Ask({"SCRIPT", "LOAD", source}).text());
  ASSERT_EQ(sha_.size(), 40U);
}

net::RedisReply ScriptServer::Ask(std::initializer_list<std::string_view> words) {
  return connection_.Ask(words);
}

net::RedisReply ScriptServer::Send() {
  if (clock_ == Clock::kManual) {
    const std::string time = ClockText(wall_us_);
    const std::array<std::string_view, 3> set = {"SET", kClockKey, time};
    std::string both;
    net::AppendRedisCommand(set, &both);
    both.append(bytes_);
    connection_.Send(both);
    (void)connection_.Read();
  } else {
    connection_.Send(bytes_);
  }
  return connection_.Read();
}

absl::Status ScriptServer::DecideOnce(std::span<ScriptGroup> groups) {
  bytes_.clear();
  call_.AppendDecide(sha_, groups, own_clock, &bytes_);
  const net::RedisReply reply = Send();
  return call_.ReadDecide(reply, groups, own_clock);
}

void ScriptServer::Decide(std::span<ScriptGroup> groups) {
  ASSERT_TRUE(DecideOnce(groups).ok());
  for (ScriptGroup& group : groups) {
    for (int turn = 1; group.state == ScriptGroup::State::kAgain; ++turn) {
      ASSERT_LT(turn, ScriptCall::kMostTurns);
      const absl::Status status = DecideOnce({&group, 1});
      ASSERT_TRUE(status.ok()) << status;
    }
  }
}

void ScriptServer::Undo(std::span<ScriptUndo> undos) {
  bytes_.clear();
  call_.AppendUndo(sha_, undos, own_clock, &bytes_);
  const net::RedisReply reply = Send();
  const absl::Status status = call_.ReadUndo(reply, undos, own_clock);
  ASSERT_TRUE(status.ok()) << status;
}

void ScriptServer::Renew(std::span<ScriptRenewal> renewals) {
  bytes_.clear();
  call_.AppendRenew(sha_, renewals, &bytes_);
  const net::RedisReply reply = Send();
  const absl::Status status = call_.ReadRenew(reply, renewals, own_clock);
  ASSERT_TRUE(status.ok()) << status;
}

}  // namespace sluice::redis::testing
