// SPDX-License-Identifier: BSD-3-Clause
// Whatever is left after repeatedly removing what comes after nothing that is left, waits for
// something else that is left: walking backwards from it ends in a cycle.
#include "sim/trace/cycles.h"

#include <algorithm>
#include <cstdint>

#include <fmt/core.h>

#include "core/base/grouped.h"

namespace reshard::sim {

template <class Id>
std::vector<std::size_t> find_cycle(std::size_t count,
                                    const std::function<std::span<const Id>(std::size_t)>& after) {
  Grouped<std::size_t> dependents(count, [&](auto put) {
    for (std::size_t i = 0; i < count; ++i)
      for (Id before : after(i)) put(before, i);
  });
  std::vector<std::size_t> waits, free;
  for (std::size_t i = 0; i < count; ++i) {
    waits.push_back(after(i).size());
    if (waits[i] == 0) free.push_back(i);
  }
  std::vector<bool> left(count, true);
  while (!free.empty()) {
    std::size_t at = free.back();
    free.pop_back();
    left[at] = false;
    for (std::size_t dependent : dependents[at])
      if (--waits[dependent] == 0) free.push_back(dependent);
  }
  auto at = to_index(std::find(left.begin(), left.end(), true) - left.begin());
  if (at == count) return {};
  std::vector<std::size_t> walk;
  std::vector<std::int64_t> seen_at(count, -1);
  while (seen_at[at] < 0) {
    seen_at[at] = static_cast<std::int64_t>(walk.size());
    walk.push_back(at);
    for (Id before : after(at))
      if (left[to_index(before)]) {
        at = to_index(before);
        break;
      }
  }
  std::vector<std::size_t> cycle(walk.begin() + seen_at[at], walk.end());
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  return cycle;
}

template std::vector<std::size_t> find_cycle<OpId>(
    std::size_t, const std::function<std::span<const OpId>(std::size_t)>&);
template std::vector<std::size_t> find_cycle<TensorId>(
    std::size_t, const std::function<std::span<const TensorId>(std::size_t)>&);

std::string cycle_text(std::span<const std::string> names, const char* what) {
  constexpr std::size_t kMaxShown = 8;
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < kMaxShown; ++i)
    out += fmt::format("{} after ", names[i]);
  if (names.size() > kMaxShown) out += fmt::format("... ({} {}) after ", names.size(), what);
  return out + names[0];
}

}  // namespace reshard::sim
