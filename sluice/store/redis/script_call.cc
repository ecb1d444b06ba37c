#include "sluice/store/redis/script_call.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/algorithm/remote_bounds.h"
#include "sluice/store/redis/internal/answer.h"
#include "sluice/store/redis/internal/convert.h"
#include "sluice/store/redis/internal/state_text.h"
#include "sluice/store/redis/internal/undo_words.h"
#include "sluice/store/redis/internal/whole_numbers.h"

namespace sluice::redis {
namespace {

constexpr std::int64_t kNsInUs = 1000;
constexpr std::int64_t kNsInMs = 1'000'000;
constexpr std::size_t kWordsOfLimit = 8;
constexpr std::size_t kWordsOfShape = 5;

// A group's answer: a text, or with this as its first element.
enum class GroupCode : std::int8_t {
  kNone = -2,
  kAlone = -1,
  kDenied = 0,
  kAllowed = 1,
  kOtherNumbers = 2,
  kBoundaries = 3,
  kTrouble = 4,
};

GroupCode CodeOf(const net::RedisValue& answer) {
  if (answer.kind() == net::RedisKind::kText) return GroupCode::kAlone;
  if (answer.size() == 0 || answer[0].kind() != net::RedisKind::kInteger) return GroupCode::kNone;
  const std::int64_t code = answer[0].integer();
  return code < 0 || code > static_cast<int>(GroupCode::kTrouble) ? GroupCode::kNone
                                                                  : static_cast<GroupCode>(code);
}

// The server's word for what went wrong, as one for whoever asked.
absl::Status TroubleOf(std::string_view text) {
  if (text.starts_with("DAMAGED")) return absl::DataLossError(std::string(text));
  if (text.starts_with("WRONGTYPE")) return absl::DataLossError(std::string(text));
  if (text.starts_with("USAGE")) return absl::InternalError(std::string(text));
  return absl::UnavailableError(std::string(text));
}

std::string_view KindWord(const ScriptClaim& claim) {
  switch (claim.kind) {
    case ClaimKind::kBinding:
      return claim.charge_denied ? "B" : "b";
    case ClaimKind::kShadow:
      return claim.charge_denied ? "S" : "s";
    case ClaimKind::kSoft:
      return "f";
    case ClaimKind::kLook:
      return "l";
    case ClaimKind::kShadowLook:
      return "v";
  }
  return "b";
}

bool Binds(ClaimKind kind) { return kind == ClaimKind::kBinding || kind == ClaimKind::kLook; }

// What a claim costs, in the script's numbers.
Instant CostOf(const ScriptClaim& claim) {
  const Limit& limit = claim.limit->limit();
  const auto* pace = std::get_if<token_bucket::Limit>(&limit);
  if (const auto* queue = std::get_if<leaky_bucket::Limit>(&limit)) pace = &queue->pace;
  if (pace == nullptr) {
    // More than can ever be charged is the same as one more than that.
    const std::uint64_t cost = std::min(claim.cost, 2 * kMostRemoteUnits);
    return {static_cast<std::int64_t>(cost), 0};
  }
  const Uint128 increment = CeilDiv(Uint128{claim.cost} * pace->period_ticks, Uint128{pace->units});
  const Uint128 most = Uint128{static_cast<std::uint64_t>(pace->capacity)} * 2;
  return InstantOf(*pace, static_cast<std::uint64_t>(std::min(increment, most)));
}

// The length of a lease as the script and the algorithms take it: whole microseconds, rounded up.
Duration LengthOf(const ScriptClaim& claim) {
  if (claim.lease <= Duration{0}) return Duration{0};
  const Duration length = std::min(claim.lease, LongestLease(claim.limit->limit()));
  return Duration{CeilDiv(length.count(), kNsInUs) * kNsInUs};
}

// "1" where it can never pass, which the increments of buckets do not tell; the length of a lease
// as a negative number; else "0".
std::int64_t MoreOf(const ScriptClaim& claim) {
  const Limit& limit = claim.limit->limit();
  const char letter = claim.limit->letter();
  if ((letter == 't' || letter == 'l') && claim.cost > CapacityOf(limit)) return 1;
  const Duration length = LengthOf(claim);
  if (length == Duration{0}) return 0;
  if (letter == 't' && claim.cost > MostLeased(limit, length)) return 1;
  // In a window it is all the same when something is spent.
  return letter == 't' || letter == 'g' || letter == 's' ? -length.count() / kNsInUs : 0;
}

bool SameShape(const ScriptClaim& a, const ScriptClaim& b) {
  return a.limit == b.limit && a.kind == b.kind && a.charge_denied == b.charge_denied &&
         a.cost == b.cost && a.lease == b.lease;
}

// The edges of the calendar's periods before, at and after the server's time, in seconds.
std::array<std::int64_t, 4> EdgesOf(const calendar::Limit& limit, WallTime server) {
  const calendar::Span here = calendar::SpanOf(limit, server);
  const calendar::Span before = calendar::SpanOf(limit, here.start - Duration{1});
  const calendar::Span after = calendar::SpanOf(limit, here.end);
  const auto seconds = [](WallTime at) { return at.time_since_epoch() / std::chrono::seconds{1}; };
  return {seconds(before.start), seconds(here.start), seconds(here.end), seconds(after.end)};
}

}  // namespace

// Writes a command word by word, in the form of the protocol.
class ScriptCall::Writer {
 public:
  Writer(std::size_t words, std::string* out) : out_(*out) { Head('*', words); }

  void Word(std::string_view word) {
    Head('$', word.size());
    out_.append(word).append("\r\n");
  }
  void Number(std::int64_t number) {
    std::array<char, 20> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    Word({digits.data(), static_cast<std::size_t>(end - digits.data())});
  }
  void Number(std::size_t number) { Number(static_cast<std::int64_t>(number)); }

  // "shape", or "shape more" with what no two claims share.
  void Claim(std::size_t shape, const ScriptClaim& claim) {
    std::array<char, 48> word;
    char* end = std::to_chars(word.data(), word.data() + 20, shape).ptr;
    if (claim.limit->letter() == 'n') {
      *end++ = ' ';
      end = std::ranges::copy(SlotName(claim.slot), end).out;
    } else if (const Duration phase = claim.limit->PhaseOf(claim.phase_bits); phase > Duration{0}) {
      *end++ = ' ';
      end = std::to_chars(end, word.data() + word.size(), phase.count() / kNsInUs).ptr;
    }
    Word({word.data(), static_cast<std::size_t>(end - word.data())});
  }

  // EVALSHA with the keys of all of `things`, then the mode and the limits.
  void Begin(std::string_view sha, std::size_t keys) {
    Word("EVALSHA");
    Word(sha);
    Number(keys);
  }
  void Limits(std::string_view mode, const std::vector<const ScriptLimit*>& limits,
              WallTime server) {
    Word(mode);
    Number(limits.size());
    for (const ScriptLimit* limit : limits) Limit(*limit, server);
  }

 private:
  void Head(char kind, std::size_t size) {
    std::array<char, 24> head;
    head[0] = kind;
    char* end = std::to_chars(head.data() + 1, head.data() + head.size(), size).ptr;
    *end++ = '\r';
    *end++ = '\n';
    out_.append(head.data(), static_cast<std::size_t>(end - head.data()));
  }

  void Limit(const ScriptLimit& limit, WallTime server) {
    Word({limit.prefix().data() + 1, 1});
    Word(limit.prefix());
    std::array<std::int64_t, ScriptLimit::kNumbers> numbers = limit.numbers();
    if (const auto* calendar = std::get_if<calendar::Limit>(&limit.limit())) {
      std::ranges::copy(EdgesOf(*calendar, server), numbers.begin() + 2);
    }
    for (const std::int64_t number : numbers) {
      if (number < 0) {
        Word("");
      } else {
        Number(number);
      }
    }
  }

  std::string& out_;
};

std::size_t ScriptCall::NumberOf(const ScriptLimit* limit) {
  const auto found = std::ranges::find(limits_, limit);
  if (found != limits_.end()) return static_cast<std::size_t>(found - limits_.begin()) + 1;
  limits_.push_back(limit);
  return limits_.size();
}

std::size_t ScriptCall::ShapeOf(const ScriptClaim& claim) {
  const auto found = std::ranges::find_if(
      shapes_, [&](const ScriptClaim* shape) { return SameShape(*shape, claim); });
  if (found != shapes_.end()) return static_cast<std::size_t>(found - shapes_.begin()) + 1;
  shapes_.push_back(&claim);
  return shapes_.size();
}

void ScriptCall::AppendDecide(std::string_view sha, std::span<const ScriptGroup> groups, Now now,
                              std::string* out) {
  assert(!groups.empty() && groups.size() <= kMostGroups);
  limits_.clear();
  shapes_.clear();
  std::size_t claims = 0;
  std::size_t conversions = 0;
  for (const ScriptGroup& group : groups) {
    assert(!group.claims.empty());
    assert(group.claims.size() == 1 || group.claims[0].lease == Duration{0});
    claims += group.claims.size();
    for (const ScriptClaim& claim : group.claims) {
      (void)NumberOf(claim.limit);
      (void)ShapeOf(claim);
      conversions += claim.converts ? 1 : 0;
    }
  }
  Writer writer(3 + claims + 2 + kWordsOfLimit * limits_.size() + 1 +
                    kWordsOfShape * shapes_.size() + 1 + claims + 1 + 3 * conversions,
                out);
  writer.Begin(sha, claims);
  for (const ScriptGroup& group : groups) {
    for (const ScriptClaim& claim : group.claims) writer.Word(claim.key);
  }
  writer.Limits("d", limits_, now.wall + clock_offset_);
  WriteShapes(writer);
  WriteSizes(groups, claims, writer);
  for (const ScriptGroup& group : groups) {
    for (const ScriptClaim& claim : group.claims) writer.Claim(ShapeOf(claim), claim);
  }
  writer.Number(conversions);
  std::size_t number = 0;
  for (const ScriptGroup& group : groups) {
    for (const ScriptClaim& claim : group.claims) {
      ++number;
      if (!claim.converts) continue;
      writer.Number(number);
      writer.Word(claim.expected);
      writer.Word(claim.converted);
    }
  }
}

void ScriptCall::WriteShapes(Writer& writer) {
  writer.Number(shapes_.size());
  for (const ScriptClaim* shape : shapes_) {
    const Instant cost = CostOf(*shape);
    writer.Number(NumberOf(shape->limit));
    writer.Word(KindWord(*shape));
    writer.Number(cost.us);
    writer.Number(cost.ticks);
    writer.Number(MoreOf(*shape));
  }
}

void ScriptCall::WriteSizes(std::span<const ScriptGroup> groups, std::size_t claims,
                            Writer& writer) {
  sizes_.clear();
  if (claims > groups.size()) {
    for (const ScriptGroup& group : groups) absl::StrAppend(&sizes_, group.claims.size(), ",");
  }
  writer.Word(sizes_);
}

absl::Status ScriptCall::ReadHead(const net::RedisValue& reply, std::size_t answers, Now now) {
  if (reply.is_error()) {
    if (reply.error_code() == "NOSCRIPT") {
      return absl::FailedPreconditionError(std::string(reply.error()));
    }
    return absl::UnavailableError(std::string(reply.error()));
  }
  if (!reply.is_array() || reply.size() != answers + 1 ||
      reply[0].kind() != net::RedisKind::kInteger) {
    return absl::DataLossError("an answer that is none of our script");
  }
  server_us_ = reply[0].integer();
  // From 2025 until 2055: the script has no other.
  if (server_us_ < 1'735'689'600'000'000 || server_us_ > 2'682'000'000'000'000) {
    return absl::DataLossError("an answer with a time that is none");
  }
  clock_offset_ = NowOf(server_us_).wall - now.wall;
  return absl::OkStatus();
}

absl::Status ScriptCall::ReadDecide(const net::RedisValue& reply, std::span<ScriptGroup> groups,
                                    Now now) {
  if (absl::Status status = ReadHead(reply, groups.size(), now); !status.ok()) return status;
  for (std::size_t i = 0; i < groups.size(); ++i) ReadGroup(reply[i + 1], groups[i]);
  return absl::OkStatus();
}

void ScriptCall::ReadGroup(const net::RedisValue& answer, ScriptGroup& group) {
  group.allowed = false;
  group.status = absl::OkStatus();
  for (ScriptClaim& claim : group.claims) {
    claim.receipt = {};
    claim.damaged = false;
  }
  switch (CodeOf(answer)) {
    case GroupCode::kAlone:
    case GroupCode::kDenied:
    case GroupCode::kAllowed:
      group.state = ScriptGroup::State::kDone;
      group.status = ReadClaims(answer, group);
      break;
    case GroupCode::kOtherNumbers:
      group.state = ScriptGroup::State::kAgain;
      group.status = ReadOthers(answer, group);
      break;
    case GroupCode::kBoundaries:
      group.state = ScriptGroup::State::kAgain;
      break;
    case GroupCode::kTrouble:
      group.status = TroubleOf(answer[1].text());
      break;
    case GroupCode::kNone:
      group.status = absl::DataLossError("an answer that is none of our script");
      break;
  }
  if (group.status.ok()) return;
  for (ScriptClaim& claim : group.claims) claim.receipt = {};
  group.allowed = false;
  group.state = ScriptGroup::State::kFailed;
  if (absl::IsInternal(group.status)) ++disagreements_;
}

absl::Status ScriptCall::ReadClaims(const net::RedisValue& answer, ScriptGroup& group) {
  const bool alone = CodeOf(answer) == GroupCode::kAlone;
  if (group.claims.size() != (alone ? 1 : answer.size() - 1)) {
    return absl::DataLossError("an answer for another number of claims");
  }
  bool room = true;
  for (std::size_t i = 0; i < group.claims.size(); ++i) {
    ScriptClaim& claim = group.claims[i];
    const net::RedisValue told = alone ? answer : answer[i + 1];
    if (absl::Status read = ReadClaim(told.text(), claim); !read.ok()) return read;
    if (Binds(claim.kind)) room = room && claim.decision.allowed();
  }
  group.allowed = alone ? room : CodeOf(answer) == GroupCode::kAllowed;
  // The other way round can be: two claims on one key may have room each, but not both.
  if (group.allowed && !room) {
    return absl::InternalError("the script allows what a binding claim has no room for");
  }
  if (!group.allowed && room && group.claims.size() == 1 && Binds(group.claims[0].kind)) {
    return absl::InternalError("the script denies what has room");
  }
  return absl::OkStatus();
}

// `told`: what was done, and the state before.
absl::Status ScriptCall::ReadClaim(std::string_view told, ScriptClaim& claim) const {
  claim.converts = false;
  const int done = told.empty() ? -1 : told[0] - '0';
  if (done < 0 || done > static_cast<int>(Done::kForced)) {
    return absl::DataLossError("an answer that is none of our script");
  }
  Now now = NowOf(server_us_);
  now.wall -= claim.limit->PhaseOf(claim.phase_bits);
  const absl::StatusOr<Answer> read = AnswerOf(*claim.limit, {.done = static_cast<Done>(done),
                                                              .state = told.substr(1),
                                                              .cost = claim.cost,
                                                              .now = now,
                                                              .slot = claim.slot,
                                                              .lease = LengthOf(claim)});
  if (!read.ok()) return read.status();
  claim.decision = read->decision;
  claim.receipt = read->receipt;
  claim.damaged = read->damaged;
  claim.good_for = Duration{0};
  if (claim.lease > Duration{0} && claim.receipt.units > 0) {
    const Limit& limit = claim.limit->limit();
    claim.good_for =
        LeaseGoodFor(limit, claim.decision, std::min(claim.lease, LongestLease(limit)));
  }
  return absl::OkStatus();
}

absl::Status ScriptCall::ReadOthers(const net::RedisValue& answer, ScriptGroup& group) {
  if (answer.size() < 3 || answer.size() % 2 == 0) {
    return absl::DataLossError("an answer that is none of our script");
  }
  for (std::size_t i = 1; i < answer.size(); i += 2) {
    const auto which = static_cast<std::uint64_t>(answer[i].integer()) - 1;
    if (which >= group.claims.size()) {
      return absl::DataLossError("an answer for a claim that was not sent");
    }
    ScriptClaim& claim = group.claims[which];
    // Not Sluice's, or of a later version: it stays as it is.
    absl::StatusOr<Conversion> conversion =
        ConvertState(answer[i + 1].text(), *claim.limit, NowOf(server_us_), claim.phase_bits);
    if (!conversion.ok()) return conversion.status();
    claim.converts = true;
    claim.expected = std::move(conversion->expected);
    claim.converted = std::move(conversion->converted);
  }
  return absl::OkStatus();
}

void ScriptCall::AppendUndo(std::string_view sha, std::span<const ScriptUndo> undos, Now now,
                            std::string* out) {
  limits_.clear();
  for (const ScriptUndo& undo : undos) (void)NumberOf(undo.limit);
  const auto marks = static_cast<std::size_t>(
      std::ranges::count_if(undos, [](const ScriptUndo& undo) { return !undo.mark.empty(); }));
  const std::size_t keys = undos.size() + marks;
  Writer writer(
      3 + keys + 2 + kWordsOfLimit * limits_.size() + 1 + (1 + UndoWords::kSize + 1) * undos.size(),
      out);
  writer.Begin(sha, keys);
  for (const ScriptUndo& undo : undos) writer.Word(undo.key);
  for (const ScriptUndo& undo : undos) {
    if (!undo.mark.empty()) writer.Word(undo.mark);
  }
  writer.Limits("u", limits_, now.wall + clock_offset_);
  writer.Number(undos.size());
  for (const ScriptUndo& undo : undos) {
    writer.Number(NumberOf(undo.limit));
    if (std::holds_alternative<concurrency::Limit>(undo.limit->limit())) {
      const auto name = SlotName(static_cast<std::uint64_t>(undo.receipt.before));
      writer.Word({name.data(), name.size()});
      writer.Number(static_cast<std::size_t>(undo.receipt.units));
      for (std::size_t i = 2; i < UndoWords::kSize; ++i) writer.Word("");
    } else {
      const UndoWords words = UndoWordsOf(
          *undo.limit, undo.receipt, std::min(undo.units, undo.receipt.units), undo.phase_bits);
      for (const std::int64_t number : words.numbers) writer.Number(number);
    }
    if (undo.mark.empty()) {
      writer.Word("");
    } else {
      writer.Number(std::max<std::int64_t>(CeilDiv(undo.mark_life.count(), kNsInMs), 1));
    }
  }
}

namespace {

// The answer to one that is given back or renewed: whether it was.
absl::StatusOr<bool> ReadYesNo(const net::RedisValue& answer) {
  if (answer.size() == 1 && answer[0].kind() == net::RedisKind::kInteger) {
    if (answer[0].integer() == static_cast<int>(GroupCode::kBoundaries)) return false;
    return answer[0].integer() == 1;
  }
  if (answer.size() == 2 && answer[0].integer() == static_cast<int>(GroupCode::kTrouble)) {
    return TroubleOf(answer[1].text());
  }
  return absl::DataLossError("an answer that is none of our script");
}

}  // namespace

absl::Status ScriptCall::ReadUndo(const net::RedisValue& reply, std::span<ScriptUndo> undos,
                                  Now now) {
  if (absl::Status status = ReadHead(reply, undos.size(), now); !status.ok()) return status;
  for (std::size_t i = 0; i < undos.size(); ++i) {
    const absl::StatusOr<bool> done = ReadYesNo(reply[i + 1]);
    undos[i].status = done.status();
    undos[i].given_back = done.ok() && *done;
  }
  return absl::OkStatus();
}

void ScriptCall::AppendRenew(std::string_view sha, std::span<const ScriptRenewal> renewals,
                             std::string* out) {
  Writer writer(3 + renewals.size() + 3 + 3 * renewals.size(), out);
  writer.Begin(sha, renewals.size());
  for (const ScriptRenewal& renewal : renewals) writer.Word(renewal.key);
  writer.Limits("r", {}, {});
  writer.Number(renewals.size());
  for (const ScriptRenewal& renewal : renewals) {
    const auto name = SlotName(static_cast<std::uint64_t>(renewal.receipt.before));
    writer.Word({name.data(), name.size()});
    writer.Number(static_cast<std::size_t>(renewal.receipt.units));
    const auto& numbers = renewal.limit->numbers();
    writer.Number(numbers[2] > 0 ? numbers[2] : numbers[3]);
  }
}

absl::Status ScriptCall::ReadRenew(const net::RedisValue& reply, std::span<ScriptRenewal> renewals,
                                   Now now) {
  if (absl::Status status = ReadHead(reply, renewals.size(), now); !status.ok()) return status;
  for (std::size_t i = 0; i < renewals.size(); ++i) {
    const absl::StatusOr<bool> held = ReadYesNo(reply[i + 1]);
    renewals[i].status = held.status();
    renewals[i].held = held.ok() && *held;
  }
  return absl::OkStatus();
}

}  // namespace sluice::redis
