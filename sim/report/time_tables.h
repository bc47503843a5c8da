// SPDX-License-Identifier: BSD-3-Clause
// Where the time goes, as tables that several reports share: the most used links, and the critical
// path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

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
                        const std::function<std::string(const PathFacts::Part&)>& what,
                        std::size_t width);

}  // namespace reshard::sim
