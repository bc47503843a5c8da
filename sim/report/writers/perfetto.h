// SPDX-License-Identifier: BSD-3-Clause
// A timeline as Chrome trace JSON, for Perfetto (ui.perfetto.dev), chrome://tracing and
// trace_processor.
//
//   process  one per rank: "rank 3 (node0 gpu3)"
//     thread 0     plan steps, compute, messages: a slice per part; further threads if streams or
//                  steps overlap on the rank
//     thread 1, 2  send, recv: a slice per busy stretch, with its flows and bytes; very many
//                  stretches are joined to fewer
//     async        a begin/end pair per flow, and an arrow from the sender's slice to the
//                  receiver's
//   process  "links": a counter per link that carried bytes, in GB/s; the area under it is the
//            link's bytes. Links with rates that change often show mean rates (link_rates.h)
//   process  with a measured run: one more per rank, below its predicted one, "measured rank 3",
//            with steps only
//
// Times are microseconds with three decimals, printed from integers. All picoseconds are floored to
// nanoseconds, so that what did not overlap does not overlap in the file; the arguments of slices
// hold exact picoseconds. Counters must not lose bytes and have six decimals.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "core/traffic/workload.h"
#include "sim/study/study.h"

namespace reshard::sim {

// What keeps the file small enough for a browser. With more flows than this, flows and arrows are
// left out, and the metadata states it.
inline constexpr std::size_t kMaxFlowsDrawn = 50'000;
// With more changes of rates than this on all links, each link shows mean rates over several.
inline constexpr std::size_t kMaxRatesDrawn = 150'000;
// With more busy stretches than this on all ranks, those of a rank that are close are drawn as one.
inline constexpr std::size_t kMaxStretchesDrawn = 100'000;

// A run of the same workload on a backend, drawn next to the prediction.
struct MeasuredRun {
  std::string backend;
  const Timeline& timeline;
};

// `labels`: a name per operation of the workload; can be shorter. The timeline must have its flows;
// links are drawn from Timeline::work.
void write_perfetto(std::ostream& out, const Workload& workload,
                    const std::vector<std::string>& labels, const Timeline& timeline,
                    const Topology& topology, const MeasuredRun* measured = nullptr);

// The same for one plan alone.
void write_perfetto(std::ostream& out, Study& study, const MeasuredRun* measured = nullptr);

// `ps` floored to nanoseconds, in microseconds: "12.345".
std::string microseconds_text(std::int64_t ps);

// ---- slices of a thread of a Chrome trace

struct Slice {
  std::int64_t start, end;
};

// The lane of each slice, such that no two slices of a lane overlap (touching is allowed). Slices
// must ascend by start. Lanes are numbered from 0; a slice gets the lowest free one.
std::vector<std::int32_t> pack_lanes(const std::vector<Slice>& slices);

// A maximal run of overlapping slices; slices that only touch are in separate ones, unless gaps
// count as parts of it.
struct Stretch {
  std::int64_t start, end;
  std::int64_t first, count;  // the consecutive slices that it consists of
};
// Slices must ascend by start. Gaps shorter than `gap` are parts of a stretch.
std::vector<Stretch> stretches(const std::vector<Slice>& slices, std::int64_t gap = 0);

}  // namespace reshard::sim
