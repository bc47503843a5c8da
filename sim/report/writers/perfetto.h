// SPDX-License-Identifier: BSD-3-Clause
// A timeline as Chrome trace JSON, for Perfetto (ui.perfetto.dev), chrome://tracing and
// trace_processor.
//
//   process  one per rank: "rank 3 (node0 gpu3)"
//     thread 0     plan steps, compute, messages: a slice per part; further threads where streams
//                  or steps overlap on the rank
//     thread 1, 2  send, recv: a slice per busy stretch, with its flows and bytes
//     async        a begin/end pair per flow, and an arrow from the sender's slice to the
//                  receiver's
//   process  "links": a counter per link that carried something, in GB/s; the area under it is the
//            link's bytes. Links of many changes show means between some of them (link_rates.h)
//   process  where a run was measured, one more per rank, below its predicted one: "measured rank
//            3", with the steps alone
//
// Times are microseconds with three decimals, printed from integers. Picoseconds are floored to
// nanoseconds everywhere alike, so that what did not overlap does not overlap in the file; exact
// picoseconds stand in the arguments of slices. Counters, which may not lose bytes, have six
// decimals.
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

// Above this many flows the file would choke a browser: flows and arrows are then left out, and the
// metadata says so; slices and counters stay.
inline constexpr std::size_t kMaxFlowsDrawn = 200'000;

// A run of the same workload on a backend, drawn beside the prediction.
struct MeasuredRun {
  std::string backend;
  const Timeline& timeline;
};

// `labels`: a name per operation of the workload; may be shorter. The timeline must hold flows,
// and what links are to show.
void write_perfetto(std::ostream& out, const Workload& workload,
                    const std::vector<std::string>& labels, const Timeline& timeline,
                    const Topology& topology, const MeasuredRun* measured = nullptr);

// The same of one plan alone.
void write_perfetto(std::ostream& out, Study& study, const MeasuredRun* measured = nullptr);

// Nanoseconds of `ps` as "us.nnn".
std::string microseconds_text(std::int64_t ps);

// ---- what a thread of a Chrome trace can show

struct Slice {
  std::int64_t start, end;
};

// A lane per slice, so that no two slices of a lane overlap (touching is allowed). Slices must
// ascend by start. Lanes are numbered from 0, the lowest free one first.
std::vector<std::int32_t> pack_lanes(const std::vector<Slice>& slices);

// A maximal stretch of overlapping slices; touching ones are apart.
struct Stretch {
  std::int64_t start, end;
  std::int64_t first, count;  // consecutive slices it is made of
};
// Slices must ascend by start.
std::vector<Stretch> stretches(const std::vector<Slice>& slices);

}  // namespace reshard::sim
