// SPDX-License-Identifier: BSD-3-Clause
// Where the time goes, as tables that several reports share: the most used links, the critical
// path, what parts of a timeline are called.
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

// "61.2 %", to the nearest.
std::string share_text(std::int64_t time_ps, std::int64_t of_ps);

// A few of the links, with a blank line above; nothing where there are none. `scale` as of
// utilisation().
std::string link_table(const std::vector<LinkUse>& links, std::int64_t end_ps, std::int64_t scale,
                       std::size_t width);

// "61.2 % of the time waits for node0.nic0.out"; empty where no time passes.
std::string path_sentence(const PathFacts& path);

// What the time waits for, summed, and the longest parts; `what` names the step or operation of a
// part, `title` says which it is.
std::string path_tables(const PathFacts& path, const std::string& title,
                        const std::function<std::string(const PathFacts::PathSpan&)>& what,
                        std::size_t width);

// What pictures of a timeline call a rank's part of an operation.

// Of a step of a plan its kind; of an operation without steps "compute", "message", "setup", or its
// collective's kind. `step`: -1 where there is none.
std::string_view part_kind(const Workload& workload, OpId op, std::int32_t step);

// "wq.weight: all_gather", "all_gather" without a label, "operation 7" without label and step.
// `labels` by operation; may be shorter.
std::string part_name(const Workload& workload, const std::vector<std::string>& labels, OpId op,
                      std::int32_t step);

}  // namespace reshard::sim
