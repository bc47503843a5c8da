// SPDX-License-Identifier: BSD-3-Clause
#include "sim/sharing/queues.h"

#include <algorithm>

namespace reshard::sim {
namespace {

// The least of a multiple of four values: four minima at a time, which do not wait for each other.
std::int64_t least(const std::int64_t* first, const std::int64_t* last) {
  std::int64_t a = first[0], b = first[1], c = first[2], d = first[3];
  for (first += 4; first != last; first += 4) {
    a = std::min(a, first[0]);
    b = std::min(b, first[1]);
    c = std::min(c, first[2]);
    d = std::min(d, first[3]);
  }
  return std::min(std::min(a, b), std::min(c, d));
}

}  // namespace

void MinimumTree::grow(std::size_t entries) {
  for (std::size_t level = 0;; ++level) {
    if (level == levels_.size()) levels_.emplace_back();
    std::size_t size = (entries + kFan - 1) / kFan * kFan;
    Level& at = levels_[level];
    if (at.values.size() < size) {
      at.values.resize(std::max(size, 2 * at.values.size()), kNever);
      at.outdated.resize(at.values.size(), 0);
    }
    entries = at.values.size() / kFan;
    if (level > 0) {
      // A level that is new, or has new children, is computed from them.
      const std::vector<std::int64_t>& below = levels_[level - 1].values;
      for (std::size_t block = 0; block < below.size() / kFan; ++block)
        at.values[block] = std::min(
            at.values[block],
            *std::min_element(below.begin() + static_cast<std::ptrdiff_t>(block * kFan),
                              below.begin() + static_cast<std::ptrdiff_t>((block + 1) * kFan)));
    }
    if (entries == 1) return;
  }
}

// A value of `level` changed from old_value to value: its parent is updated at once if that is
// lower, and marked if the old value may have been the minimum.
void MinimumTree::pass_up(std::size_t level, std::size_t index, std::int64_t value,
                          std::int64_t old_value) {
  for (; level + 1 < levels_.size(); ++level) {
    Level& parents = levels_[level + 1];
    index /= kFan;
    std::int64_t before = parents.values[index];
    if (value < before) {
      parents.values[index] = value;
      old_value = before;
      continue;
    }
    if (old_value == before && value > before && parents.outdated[index] == 0) {
      parents.outdated[index] = 1;
      parents.marked.push_back(index);
    }
    return;
  }
}

void MinimumTree::set(std::int32_t index, std::int64_t value) {
  auto at = to_index(index);
  if (at >= levels_[0].values.size()) grow(at + 1);
  std::int64_t old_value = levels_[0].values[at];
  if (value == old_value) return;
  levels_[0].values[at] = value;
  pass_up(0, at, value, old_value);
}

std::int64_t MinimumTree::minimum() {
  if (levels_[0].values.empty()) return kNever;
  for (std::size_t level = 1; level < levels_.size(); ++level) {
    Level& at = levels_[level];
    for (std::size_t index : at.marked) {
      at.outdated[index] = 0;
      const std::int64_t* first = levels_[level - 1].values.data() + index * kFan;
      std::int64_t value = least(first, first + kFan), old_value = at.values[index];
      if (value == old_value) continue;
      at.values[index] = value;
      pass_up(level, index, value, old_value);
    }
    at.marked.clear();
  }
  const std::vector<std::int64_t>& top = levels_.back().values;
  return least(top.data(), top.data() + top.size());
}

void MinimumTree::find_minimum(std::vector<std::int32_t>& out) {
  std::int64_t value = minimum();
  if (value == kNever) return;
  std::vector<std::size_t> nodes, next;
  const std::vector<std::int64_t>& top = levels_.back().values;
  for (std::size_t i = 0; i < top.size(); ++i)
    if (top[i] == value) nodes.push_back(i);
  for (std::size_t level = levels_.size() - 1; level > 0; --level) {
    next.clear();
    for (std::size_t node : nodes)
      for (std::size_t child = node * kFan; child < (node + 1) * kFan; ++child)
        if (levels_[level - 1].values[child] == value) next.push_back(child);
    nodes.swap(next);
  }
  for (std::size_t node : nodes) out.push_back(static_cast<std::int32_t>(node));
}

}  // namespace reshard::sim
