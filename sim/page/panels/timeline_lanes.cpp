// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/panels/timeline_lanes.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/report/writers/perfetto.h"

namespace reshard::sim {

namespace {

using Spans = std::vector<const Span*>;

// The resolution of a screen: slices shorter than the time / kFinest cannot be distinguished.
constexpr std::int64_t kFinest = 2000;

bool begins_before(const Span* a, const Span* b) {
  return std::tie(a->start_ps, a->op, a->step) < std::tie(b->start_ps, b->op, b->step);
}

bool do_the_same(const Spans& a, const Spans& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Span* one, const Span* other) {
    return one->op == other->op && one->step == other->step && one->start_ps == other->start_ps &&
           one->end_ps == other->end_ps;
  });
}

struct EqualRanks {
  std::vector<Rank> ranks;
  Spans spans;
};

// Groups ranks that do the same, by lowest rank. With few ranks each has its own group.
std::vector<EqualRanks> equal_ranks(std::map<Rank, Spans>&& of_rank, std::size_t ranks_apart) {
  std::vector<EqualRanks> out;
  bool apart = of_rank.size() <= ranks_apart;
  // Only ranks with the same number of spans and the same end are compared.
  std::map<std::pair<std::size_t, std::int64_t>, std::vector<std::size_t>> candidates;
  for (auto& entry : of_rank) {
    Rank rank = entry.first;
    Spans& spans = entry.second;
    auto& close = candidates[{spans.size(), spans.back()->end_ps}];
    auto same = std::find_if(close.begin(), close.end(), [&](std::size_t i) {
      return !apart && do_the_same(out[i].spans, spans);
    });
    if (same != close.end()) {
      out[*same].ranks.push_back(rank);
    } else {
      close.push_back(out.size());
      out.push_back({{rank}, std::move(spans)});
    }
  }
  return out;
}

std::int64_t end_of(const EqualRanks& lane) {
  std::int64_t end = 0;
  for (const Span* span : lane.spans) end = std::max(end, span->end_ps);
  return end;
}

void keep_some(std::vector<EqualRanks>& lanes, std::size_t most) {
  if (lanes.size() <= most) return;
  auto last = to_index(std::max_element(lanes.begin(), lanes.end(),
                                        [](const EqualRanks& a, const EqualRanks& b) {
                                          return end_of(a) < end_of(b);
                                        }) -
                       lanes.begin());
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < most; ++i) kept.push_back(i * (lanes.size() - 1) / (most - 1));
  *std::min_element(kept.begin(), kept.end(), [&](std::size_t a, std::size_t b) {
    return std::max(a, last) - std::min(a, last) < std::max(b, last) - std::min(b, last);
  }) = last;
  std::vector<EqualRanks> out;
  for (std::size_t i : kept) out.push_back(std::move(lanes[i]));
  lanes = std::move(out);
}

std::vector<std::vector<LaneSlice>> rows_of(
    const Spans& spans, const std::function<std::string_view(const Span&)>& kind_of,
    bool& crowded) {
  std::vector<Slice> slices;
  for (const Span* span : spans) slices.push_back({span->start_ps, span->end_ps});
  std::vector<std::int32_t> row_of = pack_lanes(slices);
  std::vector<std::vector<LaneSlice>> rows;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    std::size_t row = std::min(to_index(row_of[i]), Lane::kMostRows - 1);
    crowded |= to_index(row_of[i]) != row;
    if (row >= rows.size()) rows.resize(row + 1);
    const Span& span = *spans[i];
    rows[row].push_back({span.start_ps, span.end_ps, kind_of(span), span.op, span.step, 1});
  }
  return rows;
}

// Merges runs of neighbours that together are shorter than `cell_ps` into one slice.
void put_together(std::vector<LaneSlice>& row, std::int64_t cell_ps) {
  std::vector<LaneSlice> out;
  for (const LaneSlice& slice : row) {
    if (!out.empty() && slice.end_ps - out.back().start_ps < cell_ps) {
      LaneSlice& whole = out.back();
      whole.end_ps = std::max(whole.end_ps, slice.end_ps);
      if (whole.kind != slice.kind) whole.kind = kSeveralKinds;
      whole.parts += slice.parts;
    } else {
      out.push_back(slice);
    }
  }
  row = std::move(out);
}

std::size_t slice_count(const std::vector<Lane>& lanes) {
  std::size_t count = 0;
  for (const Lane& lane : lanes)
    for (const std::vector<LaneSlice>& row : lane.rows) count += row.size();
  return count;
}

}  // namespace

Lanes lanes_of(const Timeline& timeline, const LaneLimits& limits,
               const std::function<std::string_view(const Span&)>& kind_of) {
  std::map<Rank, Spans> of_rank;
  for (const Span& span : timeline.spans)
    if (span.end_ps > span.start_ps) of_rank[span.rank].push_back(&span);
  for (auto& [rank, spans] : of_rank) std::sort(spans.begin(), spans.end(), begins_before);
  Lanes out;
  out.ranks = of_rank.size();
  std::vector<EqualRanks> equal = equal_ranks(std::move(of_rank), limits.ranks_apart);
  out.all_lanes = equal.size();
  keep_some(equal, limits.lanes);
  for (EqualRanks& lane : equal)
    out.lanes.push_back({std::move(lane.ranks), rows_of(lane.spans, kind_of, out.crowded)});
  std::int64_t cell_ps = timeline.end_ps / kFinest;
  while (slice_count(out.lanes) > limits.slices && cell_ps < timeline.end_ps) {
    cell_ps = std::max<std::int64_t>(1, 2 * cell_ps);
    for (Lane& lane : out.lanes)
      for (std::vector<LaneSlice>& row : lane.rows) put_together(row, cell_ps);
    out.together_ps = cell_ps;
  }
  return out;
}

}  // namespace reshard::sim
