// SPDX-License-Identifier: BSD-3-Clause
// Tables about time that several reports share: the busiest links, the critical path, and the names
// of the parts of a timeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/traffic/workload.h"
#include "sim/study/run_facts.h"

namespace reshard::sim {

// "61.2 %", rounded half up.
std::string share_text(std::int64_t time_ps, std::int64_t of_ps);

// The first few of the links, after a blank line; empty if there are none. `scale` as in
// utilisation().
std::string link_table(const std::vector<LinkUse>& links, std::int64_t end_ps, std::int64_t scale,
                       std::size_t width);

// "61.2 % of the time is spent waiting for node0.nic0.out"; empty if no time passes, "not recorded:
// too many transfers" if there is no path.
std::string path_sentence(const PathFacts& path);

// The causes of waiting, summed, and the longest parts. `what` names the step or operation of a
// part; `title` is the title of that column.
std::string path_tables(const PathFacts& path, const std::string& title,
                        const std::function<std::string(const PathFacts::PathSpan&)>& what,
                        std::size_t width);

// ---- names in charts for a rank's part of an operation

// For a step of a plan its kind; for an operation without steps (`step` is -1) "compute",
// "message", "setup", or the kind of the collective.
std::string_view part_kind(const Workload& workload, OpId op, std::int32_t step);

// "wq.weight: all_gather"; without a label "all_gather"; without label and step "operation 7".
// `labels` is indexed by operation and can be shorter.
std::string part_name(const Workload& workload, const std::vector<std::string>& labels, OpId op,
                      std::int32_t step);

}  // namespace reshard::sim
