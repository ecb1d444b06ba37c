// What /metrics shows beside the decisions: the store, the gateway, reloads, the build.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/base/line_writer.h"
#include "sluice/store/memory/memory_store.h"
#include "sluice/transport/gateway/gateway.h"

namespace sluice {

struct ReloadCounts {
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
};

// All of these append.
void WriteStoreMetrics(const MemoryStats& stats, std::string& out);
void WriteAccessLogMetrics(const LineWriter& lines, std::string& out);
void WriteGatewayMetrics(const gateway::Gateway::Counters& counters, std::string& out);
// `node` is node.name; it may be empty.
void WriteServerMetrics(const ReloadCounts& reloads, std::uint64_t generation, bool draining,
                        std::string_view node, std::string& out);

}  // namespace sluice
