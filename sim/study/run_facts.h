// SPDX-License-Identifier: BSD-3-Clause
// What reports say of a run beside its time: which links it used and how much, what its time was
// waited for, and what became of the bytes.
#pragma once

#include <cstdint>
#include <optional>
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

// Resources that carried bytes, by bytes over capacity (the time they would need alone),
// descending, then by id; at most `limit`.
std::vector<LinkUse> busiest_links(const Timeline& timeline, const Topology& topology,
                                   std::size_t limit);

// bytes / (capacity x end) in units of 1 / `scale` (at most 10^6), rounded half up; 0 at end 0.
std::int64_t utilisation(const LinkUse& link, std::int64_t end_ps, std::int64_t scale);

// The critical path as reports show it.
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

  bool recorded = false;  // else there were too many transfers, and all else is empty
  // From 0 to the end without gaps. Of more than kMostParts the shortest became part of what came
  // before them.
  static constexpr std::size_t kMostParts = 4096;
  std::vector<PathSpan> parts;
  std::vector<Cause> causes;  // summed over all, most time first, then by name
};
struct PathPart;  // sim/study/critical_path.h
PathFacts path_facts(const std::optional<std::vector<PathPart>>& path, const Topology& topology,
                     std::size_t most_parts = PathFacts::kMostParts);

struct ClassUse {
  Transport transport;
  std::int64_t bytes, flows;
};

// The timeline's flows by the transport of their route, in the order of Transport; classes without
// flows are left out.
std::vector<ClassUse> use_by_class(const Timeline& timeline, const Topology& topology);

// What a command was at, and for how long.
struct PhaseTime {
  std::string name;
  std::int64_t time_ps = 0;
};
std::string text(const std::vector<PhaseTime>& phases);  // "planning 1.2 ms, proving 3.4 ms"

// What became of a plan's bytes, as the store found it.
struct DataReport {
  bool checked = false;
  bool full_size = false;             // else the tensor was shrunk to fit the budget
  std::optional<Shape> shape = {};    // of the tensor that was moved; none where there are several
  std::int64_t elements = 0;          // destination elements compared, all ranks together
  std::optional<Digest> digest = {};  // XXH3-128 over the destination shards, tensor by tensor and
                                      // rank ascending; none where they hold no element
  std::int64_t bytes_moved = 0;       // written by steps
  std::string note = {};              // why nothing was moved
};

}  // namespace reshard::sim
