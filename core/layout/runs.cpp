// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/runs.h"

#include <algorithm>

namespace reshard {

std::int64_t size_of(Runs runs) { return runs.empty() ? 0 : runs.back().local_hi(); }

void PieceTable::add_run(std::int64_t global_lo, std::int64_t size) {
  if (size <= 0) return;
  std::size_t begin = begins_.back();
  if (runs_.size() > begin && runs_.back().global_hi() == global_lo) {
    runs_.back().size += size;
    return;
  }
  std::int64_t local_lo = runs_.size() > begin ? runs_.back().local_hi() : 0;
  runs_.push_back({global_lo, local_lo, size});
}

void PieceTable::add_slice(Runs from, std::int64_t local_lo, std::int64_t local_hi) {
  auto first = std::partition_point(from.begin(), from.end(),
                                    [&](const Run& run) { return run.local_hi() <= local_lo; });
  for (auto it = first; it != from.end() && it->local_lo < local_hi; ++it) {
    std::int64_t lo = std::max(local_lo, it->local_lo), hi = std::min(local_hi, it->local_hi());
    add_run(it->global_lo + (lo - it->local_lo), hi - lo);
  }
}

std::vector<std::pair<Run, std::int64_t>> sorted_runs(const PieceTable& pieces) {
  std::vector<std::pair<Run, std::int64_t>> out;
  for (std::int64_t piece = 0; piece < pieces.count(); ++piece)
    for (const Run& run : pieces.runs(piece)) out.emplace_back(run, piece);
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.first.global_lo < b.first.global_lo; });
  return out;
}

}  // namespace reshard
