// The name of a counter's key in Redis.
//
//   sluice:1{Xb3_9sQe2Lw}api:ann           prefix, version, hash tag, rule, the parts of its key
//   sluice:1n{Xb3_9sQe2Lw}exports:ann      of what is no counter the kind, behind the version
//   sluice:1u{Xb3_9sQe2Lw}4fQ...           of an undo that was done: the tag of its counter, an id
//
// Readable, and the same on every node and in every version. The rule's numbers are not in it, so a
// counter outlives a change of them.
//
// No two inputs give one name: of rule and parts only letters, digits and -._~@/,=+ stay as they
// are (never a blank, a control byte, a brace or a separator; UTF-8 and the rest become %XX), each
// part stands behind a ':', one that replaces a missing identity behind a '!', and a hashed
// identity behind a '#'.
//
// The hash tag is a hash of all parts but not of the rule's name: in a cluster all rules that count
// one identity lie in one slot, and a request that meets several of them is one call. It is never
// the identity itself, which could name a slot of a client's choice in words of its own.
//
// What stands there in place of the identity when it is hashed (by choice, or where its text is
// longer than kLongestText) is 128 bits of SipHash-1-3, under a key if the caller has one. Without
// one whoever may list the keys can try identities.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/base/hash.h"

namespace sluice::redis {

// What lies under a key. Slots and counters must not meet under one name: where a rule's algorithm
// changes from or to concurrency it begins anew, as in memory.
enum class KeyKind : std::uint8_t { kCounter, kSlots, kBlock };

struct KeyOptions {
  std::string prefix = "sluice";  // escaped like a part, but for ':'
  bool hash_identities = false;
  const HashKey* hash_key = nullptr;  // shared by all nodes, lives on; null: a public one
};

// Of the parts of a key, in text. Longer ones are hashed.
inline constexpr std::size_t kLongestText = 256;

// Appends the name of the key whose bytes are `key` (RuleSet: the rule's name, then the parts, each
// behind its length) to `out`, and returns 32 bits that are the same for it everywhere, for the
// phase of its windows. For bytes that are not such: a name all the same, of all bytes as one part.
std::uint32_t AppendKeyName(const KeyOptions& options, KeyKind kind, std::string_view key,
                            std::string* out);

// Appends the name of the mark of one undo on the key of that name. `node` and `number` together
// are no other undo's: node is drawn at random.
void AppendMarkName(std::string_view key_name, std::uint64_t node, std::uint64_t number,
                    std::string* out);

}  // namespace sluice::redis
