#include "sluice/store/redis/key_name.h"

#include <array>
#include <charconv>
#include <cstring>

#include "sluice/base/ascii.h"

namespace sluice::redis {
namespace {

constexpr std::size_t kTagSize = 11;  // 64 bits, 6 a digit
constexpr std::uint32_t kFallback = std::uint32_t{1} << 31;
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// Public: what it hashes is hidden only from who looks by chance.
const HashKey& PublicKey() {
  static const HashKey key(HashKind::kSipHash13, {'s', 'l', 'u', 'i', 'c', 'e', '1'});
  return key;
}

void AppendDigits(std::uint64_t number, std::string* out) {
  for (std::size_t i = 0; i < kTagSize; ++i) {
    out->push_back(kDigits[number % 64]);
    number /= 64;
  }
}

bool Stays(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const bool digit = c >= '0' && c <= '9';
  return letter || digit || std::string_view("-._~@/,=+").find(c) != std::string_view::npos;
}

void AppendEscaped(std::string_view text, bool colon_stays, std::string* out) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (const char c : text) {
    if (Stays(c) || (colon_stays && c == ':')) {
      out->push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out->append({'%', kHex[byte / 16], kHex[byte % 16]});
  }
}

// Takes "3:api" from the front of `key`. Empty and false where that is not there.
bool TakeRuleName(std::string_view* key, std::string_view* name) {
  std::size_t size = 0;
  const char* const end = key->data() + key->size();
  const auto [read, error] = std::from_chars(key->data(), end, size);
  if (error != std::errc{} || read == end || *read != ':') return false;
  const auto rest = static_cast<std::size_t>(end - read) - 1;
  if (size > rest) return false;
  *name = {read + 1, size};
  *key = {read + 1 + size, rest - size};
  return true;
}

// Takes a length and as many bytes.
bool TakePart(std::string_view* key, std::string_view* part, bool* fallback) {
  std::uint32_t length = 0;
  if (key->size() < sizeof length) return false;
  std::memcpy(&length, key->data(), sizeof length);
  key->remove_prefix(sizeof length);
  *fallback = (length & kFallback) != 0;
  length &= ~kFallback;
  if (length > key->size()) return false;
  *part = key->substr(0, length);
  key->remove_prefix(length);
  return true;
}

// Bytes that no RuleSet makes, behind something that no part begins with.
void AppendForeign(std::string_view bytes, std::string* out) {
  out->append("%:");
  AppendEscaped(bytes, false, out);
}

void AppendParts(std::string_view parts, std::string* out) {
  std::string_view part;
  bool fallback = false;
  while (!parts.empty()) {
    std::string_view left = parts;
    if (!TakePart(&left, &part, &fallback)) {
      out->push_back(':');
      AppendForeign(parts, out);
      return;
    }
    out->push_back(fallback ? '!' : ':');
    AppendEscaped(part, false, out);
    parts = left;
  }
}

std::string_view KindWord(KeyKind kind) {
  switch (kind) {
    case KeyKind::kCounter:
      return "";
    case KeyKind::kSlots:
      return "n";
    case KeyKind::kBlock:
      return "b";
  }
  return "";
}

}  // namespace

std::uint32_t AppendKeyName(const KeyOptions& options, KeyKind kind, std::string_view key,
                            std::string* out) {
  AppendEscaped(options.prefix, true, out);
  out->append(":1").append(KindWord(kind)).push_back('{');
  const std::size_t tag = out->size();
  out->append(kTagSize, '-').push_back('}');
  const std::size_t rule = out->size();
  std::string_view name;
  const bool of_a_rule = TakeRuleName(&key, &name);
  if (of_a_rule) AppendEscaped(name, false, out);

  const std::size_t identity = out->size();
  if (of_a_rule) {
    AppendParts(key, out);
  } else {
    AppendForeign(key, out);
  }
  const HashKey& hash = options.hash_key == nullptr ? PublicKey() : *options.hash_key;
  const std::size_t size = out->size() - identity;
  if (size > kLongestText || (options.hash_identities && size > 0)) {
    const Hash128 hashed = hash(std::string_view(*out).substr(identity));
    out->resize(identity);
    out->push_back('#');
    AppendDigits(hashed.lo, out);
    AppendDigits(hashed.hi, out);
  }
  const std::string_view text(*out);
  std::string digits;
  AppendDigits(PublicKey()(text.substr(identity)).lo, &digits);
  out->replace(tag, kTagSize, digits);
  return static_cast<std::uint32_t>(PublicKey()(std::string_view(*out).substr(rule)).hi);
}

void AppendMarkName(std::string_view key_name, std::uint64_t node, std::uint64_t number,
                    std::string* out) {
  const std::size_t tag = key_name.find('{');  // the only brace: all others are escaped
  const std::size_t version = key_name.rfind(":1", tag) + 2;
  out->append(key_name.substr(0, version)).push_back('u');
  out->append(key_name.substr(tag, kTagSize + 2));
  AppendDigits(node, out);
  AppendDigits(number, out);
}

}  // namespace sluice::redis
