// SPDX-License-Identifier: BSD-3-Clause
// Cycles of `after`, between the lines of a trace or the requests of a job.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/ids.h"

namespace reshard::sim {

// A cycle among 0 .. count-1, where i comes after all of `after(i)`: each entry comes after the
// next, and the last one after the first, which is the least of them. Empty if there is none.
template <class Id>
std::vector<std::size_t> find_cycle(std::size_t count,
                                    const std::function<std::span<const Id>(std::size_t)>& after);

extern template std::vector<std::size_t> find_cycle<OpId>(
    std::size_t, const std::function<std::span<const OpId>(std::size_t)>&);
extern template std::vector<std::size_t> find_cycle<TensorId>(
    std::size_t, const std::function<std::span<const TensorId>(std::size_t)>&);

// "line 3 after line 5 after line 3"; for a long cycle, its start and its length.
std::string cycle_text(std::span<const std::string> names, const char* what);

}  // namespace reshard::sim
