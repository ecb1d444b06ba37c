// What a Redis server answers to the script, read as an answer to claims of every algorithm, and as
// states and key bytes: nothing is believed that cannot be.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/net/redis_reply.h"
#include "sluice/store/redis/internal/convert.h"
#include "sluice/store/redis/key_name.h"
#include "sluice/store/redis/script_call.h"

namespace {

using namespace std::chrono_literals;
using namespace sluice;
using namespace sluice::redis;

void Require(bool holds) {
  if (!holds) std::abort();
}

const std::vector<ScriptLimit>& Limits() {
  static const std::vector<ScriptLimit> limits = {
      *ScriptLimit::Make(*token_bucket::MakeLimit({10, 1s}, 5)),
      *ScriptLimit::Make(*leaky_bucket::MakeLimit({7919, 1s}, 5, 10s)),
      *ScriptLimit::Make(*fixed_window::MakeLimit(10, 1s)),
      *ScriptLimit::Make(*fixed_window::MakeLimit(10, 1s, fixed_window::Align::kFirstHit)),
      *ScriptLimit::Make(*sliding_window_counter::MakeLimit(1LL << 50, 1s)),
      *ScriptLimit::Make(*sliding_window_strict::MakeLimit(10, 1s, 4)),
      *ScriptLimit::Make(*sliding_window_log::MakeLimit(10, 1s, true)),
      *ScriptLimit::Make(*sliding_window_log::MakeLimit(10, 24h, false)),
      *ScriptLimit::Make(*calendar::MakeLimit(10, calendar::Period::kDay, "UTC")),
      *ScriptLimit::Make(*concurrency::MakeLimit(10, 1s)),
  };
  return limits;
}

// A group for each limit of which units can be leased.
void CheckLeases(const net::RedisReply& reply) {
  std::vector<ScriptClaim> claims;
  for (const ScriptLimit& limit : Limits()) {
    // Elsewhere a charge, so that the groups are those of the other answers.
    const Duration lease = CanLease(limit.limit()) ? 100ms : 0ms;
    claims.push_back({.key = "key", .limit = &limit, .cost = 3, .lease = lease});
  }
  std::vector<ScriptGroup> groups;
  for (ScriptClaim& claim : claims) groups.push_back({.claims = {&claim, 1}});
  ScriptCall call;
  if (!call.ReadDecide(reply, groups, NowOf(1'781'000'000'000'000)).ok()) return;
  for (const ScriptGroup& group : groups) {
    const ScriptClaim& claim = group.claims[0];
    const bool granted = group.allowed && claim.receipt.units == 3;
    Require(claim.receipt.units == (granted ? 3 : 0));
    if (claim.lease > 0ms && group.state == ScriptGroup::State::kDone) {
      Require(claim.good_for >= 0ms && claim.good_for <= 100ms);
      Require((claim.good_for > 0ms) == granted);
    }
  }
}

// A group for each limit, and one of all of them.
void CheckAnswer(const net::RedisReply& reply) {
  const Now now = NowOf(1'781'000'000'000'000);
  for (const ClaimKind kind : {ClaimKind::kBinding, ClaimKind::kSoft}) {
    std::vector<ScriptClaim> claims;
    for (const ScriptLimit& limit : Limits()) {
      claims.push_back({.key = "key", .limit = &limit, .kind = kind, .cost = 3});
    }
    for (std::size_t size = 1; size <= claims.size(); size += claims.size() - 1) {
      std::vector<ScriptGroup> groups;
      for (std::size_t i = 0; i + size <= claims.size(); i += size) {
        groups.push_back({.claims = std::span(claims).subspan(i, size)});
      }
      ScriptCall call;
      if (!call.ReadDecide(reply, groups, now).ok()) continue;
      for (const ScriptGroup& group : groups) {
        Require(group.state == ScriptGroup::State::kFailed ? !group.status.ok()
                                                           : group.status.ok());
        Require(!group.allowed || group.state == ScriptGroup::State::kDone);
        for (const ScriptClaim& claim : group.claims) {
          Require(claim.receipt.units <= claim.cost);
          Require(claim.receipt.units == 0 || group.state == ScriptGroup::State::kDone);
          if (group.allowed && kind == ClaimKind::kBinding) Require(claim.decision.allowed());
        }
      }
    }
  }
  std::array<ScriptUndo, 2> undos;
  ScriptCall call;
  if (call.ReadUndo(reply, undos, now).ok()) {
    for (const ScriptUndo& undo : undos) Require(undo.status.ok() || !undo.given_back);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  net::RedisReplyReader reader;
  reader.Feed(text);
  net::RedisReply reply;
  while (reader.Next(&reply) == net::RedisReplyReader::Step::kReply) {
    CheckAnswer(reply);
    CheckLeases(reply);
  }

  for (const ScriptLimit& limit : Limits()) {
    const auto converted = ConvertState(text, limit, NowOf(1'781'000'000'000'000), 12'345);
    if (!converted.ok()) continue;
    Require(text.starts_with(converted->expected));
    // What we would write we can read.
    if (converted->converted.empty() || limit.letter() == 'g') continue;
    Require(converted->converted.starts_with(limit.prefix()));
    Require(ConvertState(converted->converted, limit, NowOf(1'781'000'000'000'000), 12'345).ok());
  }
  std::string name;
  (void)AppendKeyName({}, KeyKind::kCounter, text, &name);
  for (const char c : name) Require(c > ' ' && c < 127);
  Require(name.size() < 4096);
  return 0;
}
