// Numbers as bytes, the lowest byte first whatever the machine: what a snapshot is written with.
// Reading is in snapshot_file.h.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::memory {

inline void PutU8(std::string& out, std::uint8_t value) { out.push_back(static_cast<char>(value)); }

inline void PutU32(std::string& out, std::uint32_t value) {
  char bytes[4];
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<char>(value >> 8 * i);
  out.append(bytes, sizeof bytes);
}

inline void PutU64(std::string& out, std::uint64_t value) {
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> 8 * i);
  out.append(bytes, sizeof bytes);
}

inline void PutI64(std::string& out, std::int64_t value) {
  PutU64(out, static_cast<std::uint64_t>(value));
}

// Seven bits a byte, the lowest first; the highest bit says that more follow.
inline void PutVarint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

}  // namespace sluice::memory
