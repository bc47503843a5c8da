// SPDX-License-Identifier: BSD-3-Clause
// What reports show about a run in addition to its time: link usage, the critical path, and the
// result of the data check.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/digest.h"
#include "core/layout/box.h"
#include "core/plan/executor.h"
#include "core/topology/topology.h"

namespace reshard::sim {

struct LinkUse {
  std::string name;
  std::int64_t bytes, busy_ps;
  std::int64_t bytes_per_s;  // capacity
};

// At most `limit` of the resources that carried bytes, by bytes / capacity (the time that the bytes
// alone would take), descending, then by id.
std::vector<LinkUse> busiest_links(const Timeline& timeline, const Topology& topology,
                                   std::size_t limit);

// bytes / (capacity x end_ps) in units of 1 / `scale` (at most 10^6), rounded half up; 0 if
// end_ps is 0.
std::int64_t utilisation(const LinkUse& link, std::int64_t end_ps, std::int64_t scale);

// The critical path (critical_path.h) as reports show it.
struct PathFacts {
  struct PathSpan {
    OpId op;
    std::int32_t step;
    std::string cause;
    std::int64_t start_ps, end_ps;
  };
  struct Cause {
    std::string name;
    std::int64_t time_ps;
  };

  bool recorded = false;  // false: the run had too many waits, and the rest is empty
  // From 0 to the end without gaps. If there were more than `most_parts`, each of the shortest was
  // merged into the part before it.
  static constexpr std::size_t kMostParts = 4096;
  std::vector<PathSpan> parts;
  std::vector<Cause> causes;  // time summed over all parts, descending, then by name
};
struct PathPart;  // sim/study/critical_path.h
PathFacts path_facts(const std::optional<std::vector<PathPart>>& path, const Topology& topology,
                     std::size_t most_parts = PathFacts::kMostParts);

struct ClassUse {
  Transport transport;
  std::int64_t bytes, flows;
};

// The timeline's flows by the transport class of their route, in the order of Transport; classes
// without flows are left out.
std::vector<ClassUse> use_by_class(const Timeline& timeline, const Topology& topology);

// A phase of a command and how long it took.
struct PhaseTime {
  std::string name;
  std::int64_t time_ps = 0;
};
std::string text(const std::vector<PhaseTime>& phases);  // "planning 1.200 ms, proving 3.400 ms"

// First start and last end of a step on any rank.
struct Extent {
  std::optional<std::int64_t> start_ps, end_ps;
};
// By step; CheckFailure for a span without a step.
IndexVector<std::int32_t, Extent> extents_of(const Timeline& timeline, std::size_t step_count);

// A stage of a plan, and when it ran.
struct StageRow {
  std::size_t tensors = 0;
  std::string first = {};  // its first tensor: the name, else the request
  std::vector<std::int32_t> after = {};
  std::int64_t steps = 0, bytes = 0;  // received from other ranks, padding included
  Extent extent = {};
};
// `spans` of the plan's own operation, ascending. Empty if the plan has no stages.
std::vector<StageRow> stage_rows(const Plan& plan, std::span<const std::int64_t> received_per_step,
                                 std::span<const Span> spans);

// The result of running a plan on real bytes in the store (sim/store/data_check.h).
struct DataReport {
  bool checked = false;
  bool full_size = false;             // false: the tensor was shrunk to fit the budget
  std::optional<Shape> shape = {};    // of the tensor that was moved; none if there are several
  std::int64_t elements = 0;          // destination elements compared, summed over ranks
  std::optional<Digest> digest = {};  // XXH3-128 over the destination shards, by tensor, then by
                                      // ascending rank; none if they hold no elements
  std::int64_t bytes_moved = 0;       // written by steps
  std::string note = {};              // why nothing was moved
};

}  // namespace reshard::sim
