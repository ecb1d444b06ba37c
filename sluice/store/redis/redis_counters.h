// What a store in Redis has done since its start, for the operator. Written by the store's loop
// alone; any thread may read, each number by itself.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sluice/base/one_writer_counter.h"
#include "sluice/base/time.h"

namespace sluice::redis {

// How long something took. Bucket i has what took at most kBounds[i] and is in no bucket before;
// the last has all else.
class RedisHistogram {
 public:
  static constexpr auto kBounds = std::to_array<Duration>(
      {std::chrono::microseconds{100}, std::chrono::microseconds{250},
       std::chrono::microseconds{500}, std::chrono::milliseconds{1},
       std::chrono::microseconds{2500}, std::chrono::milliseconds{5},
       std::chrono::microseconds{7500}, std::chrono::milliseconds{10},
       std::chrono::milliseconds{15}, std::chrono::milliseconds{25}, std::chrono::milliseconds{50},
       std::chrono::milliseconds{100}, std::chrono::seconds{1}});
  static constexpr std::size_t kBuckets = kBounds.size() + 1;

  void Add(Duration took);
  [[nodiscard]] std::uint64_t operator[](std::size_t bucket) const {
    return buckets_[bucket].value();
  }
  [[nodiscard]] Duration sum() const {
    return Duration{static_cast<Duration::rep>(nanoseconds_.value())};
  }

 private:
  std::array<OneWriterCounter, kBuckets> buckets_;
  OneWriterCounter nanoseconds_;
};

// What a server, or our script on it, answers in place of a decision. None of them is a denial.
enum class ServerError : std::uint8_t {
  kReadOnly,     // a replica: it was a primary once
  kLoading,      // reads its data from the disk
  kOutOfMemory,  // at its maxmemory, and may evict nothing
  kBusy,         // somebody's script runs for too long
  kNoAuth,       // wants a password
  kNoPerm,       // the user may not do what we ask
  kMisconf,      // cannot save, and was told to take no writes then
  kWrongType,    // under a key lies what is no state of ours
  kMasterDown,   // a replica that lost its primary
  kClusterDown,
  kMoved,     // a node of a cluster that has not got the key: MOVED, ASK, CROSSSLOT, TRYAGAIN
  kNoScript,  // it lost the script
  kDamaged,   // a state that cannot be read
  kOther,
};
inline constexpr std::size_t kServerErrors = 14;

// By its first word: "READONLY You can't write against a read only replica."
[[nodiscard]] ServerError ServerErrorOf(std::string_view text);
// For a label: "readonly", "oom", "other".
[[nodiscard]] std::string_view NameOf(ServerError error);

inline constexpr std::size_t kRedirects = 3;

struct RedisCounters {
  OneWriterCounter groups;   // sent; those sent again count once
  OneWriterCounter calls;    // of the script, with groups to decide on
  OneWriterCounter again;    // groups that were sent again
  OneWriterCounter late;     // groups that ended by their deadline
  OneWriterCounter refused;  // groups that were not taken, or could not be sent
  OneWriterCounter waiting;  // groups that wait now
  RedisHistogram waits;      // of groups that were taken, from asking until whoever asked is told
  OneWriterCounter damaged;  // states that were impossible and counted as absent
  OneWriterCounter
      disagreements;          // answers that the algorithms do not confirm: none of either counts
  OneWriterCounter connects;  // connections that became ready
  OneWriterCounter script_loads;   // asked for
  OneWriterCounter undos;          // given back, or found to be worth nothing any more
  OneWriterCounter undos_dropped;  // could not be given back: that much stays charged
  OneWriterCounter undos_waiting;  // now
  OneWriterCounter renewals;       // sent
  std::array<OneWriterCounter, kServerErrors> errors;  // answers, by kind

  // Of a cluster alone.
  std::array<OneWriterCounter, kRedirects> redirects;  // followed, by Redirect::Kind
  OneWriterCounter maps;                               // of slots, that were read
  OneWriterCounter no_maps;                            // that could not be
  OneWriterCounter primaries;                          // that have slots, now
  OneWriterCounter slots_missing;                      // that no server decides on, now
};

}  // namespace sluice::redis
