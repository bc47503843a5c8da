// SPDX-License-Identifier: BSD-3-Clause
// What ran when, whoever ran it: the simulated engine or a real backend.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"

namespace reshard {

// One rank's part of one step of a plan, or of an operation without steps (step -1: compute, send,
// recv, bare collective).
struct Span {
  OpId op;
  std::int32_t step;
  Rank rank;
  std::int64_t start_ps, end_ps;
  friend bool operator==(const Span&, const Span&) = default;
};

// One transfer between two ranks. start_ps: both ends ready, the latency begins; end_ps: the last
// byte has arrived.
struct FlowSpan {
  OpId op;
  std::int32_t step;
  Rank source, destination;
  std::int64_t bytes, start_ps, end_ps;
  friend bool operator==(const FlowSpan&, const FlowSpan&) = default;
};

struct ResourceUse {
  std::int64_t bytes = 0;
  std::int64_t busy_ps = 0;  // time with at least one flow sharing it (latency not counted)
  friend bool operator==(const ResourceUse&, const ResourceUse&) = default;
};

struct Timeline {
  std::int64_t end_ps = 0;
  std::vector<Span> spans;  // ascending (op, step, rank)
  // Ascending (start, op, step, source, destination); empty unless asked for.
  std::vector<FlowSpan> flows;
  std::vector<ResourceUse> resources;  // by ResourceId; empty from backends that cannot tell
};

}  // namespace reshard
