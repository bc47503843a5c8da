// SPDX-License-Identifier: BSD-3-Clause
#include "sim/picture/tiles.h"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace reshard::sim {
namespace {

// A row or column of the grid: indices [lo, hi) of one dim, uncut or several joined.
struct Band {
  std::int64_t lo, hi;
};

std::vector<Band> bands_of(const Layout& layout, int dim, std::size_t most) {
  std::vector<std::int64_t> cuts = layout.cuts(dim);
  std::size_t joined = (cuts.size() - 1 + most - 1) / most;
  std::vector<Band> bands;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (i % joined == 0) bands.push_back({cuts[i], 0});
    bands.back().hi = cuts[i + 1];
  }
  return bands;
}

std::size_t run_count(const Layout& layout, int dim) { return layout.cuts(dim).size() - 1; }

// The most bands of a dim: at most 256 tiles in all slices together, and rows high enough for text.
std::size_t most_bands(const Layout& layout, const TileView& view) {
  bool both =
      view.down >= 0 && run_count(layout, view.down) > 1 && run_count(layout, view.across) > 1;
  if (!both) return 32;
  return view.slices.size() > 1 ? 8 : 16;
}

// Between two of these neither side is cut.
std::vector<std::int64_t> cuts_of(const Request& request, int dim) {
  std::vector<std::int64_t> from = request.source().cuts(dim), to = request.destination().cuts(dim),
                            out;
  std::set_union(from.begin(), from.end(), to.begin(), to.end(), std::back_inserter(out));
  return out;
}

// Chooses the two dims with most cuts; among equals the longer, then the earlier.
void choose_dims(const Request& request, TileView& view) {
  std::vector<int> dims;
  for (int d = 0; d < request.shape().size(); ++d) dims.push_back(d);
  std::vector<std::size_t> cuts;
  for (int d : dims) cuts.push_back(cuts_of(request, d).size());
  std::stable_sort(dims.begin(), dims.end(), [&](int a, int b) {
    return std::pair(cuts[to_index(a)], request.shape()[a]) >
           std::pair(cuts[to_index(b)], request.shape()[b]);
  });
  if (dims.size() > 2) dims.resize(2);
  std::sort(dims.begin(), dims.end());
  if (!dims.empty()) view.across = dims.back();
  if (dims.size() == 2) view.down = dims.front();
}

}  // namespace

TileView view_of(const Request& request) {
  TileView view;
  choose_dims(request, view);
  view.slices_in_all = 1;
  const Shape& shape = request.shape();
  std::vector<std::vector<std::int64_t>> cuts;
  DimVector counts(shape.size(), 1);
  for (int d = 0; d < shape.size(); ++d) {
    bool drawn = d == view.down || d == view.across;
    cuts.push_back(drawn ? std::vector<std::int64_t>{0, shape[d]} : cuts_of(request, d));
    counts[d] = static_cast<std::int64_t>(cuts.back().size()) - 1;
    view.slices_in_all = checked_product(view.slices_in_all, counts[d]).value_or(kMaxBytes);
  }
  if (element_count(shape) == 0) return view;
  DimVector at(shape.size(), 0);
  do {
    Box slice = box_of(shape);
    for (int d = 0; d < shape.size(); ++d) {
      slice.lo[d] = cuts[to_index(d)][to_index(at[d])];
      slice.hi[d] = cuts[to_index(d)][to_index(at[d]) + 1];
    }
    view.slices.push_back(slice);
  } while (view.slices.size() < kMostSlices && next_index(at, [&](int d) { return counts[d]; }));
  return view;
}

std::vector<Tile> tiles_of(const Layout& layout, const TileView& view, const Box& slice) {
  const std::vector<Band> whole{{0, 1}};
  std::size_t most = most_bands(layout, view);
  std::vector<Band> down = view.down < 0 ? whole : bands_of(layout, view.down, most);
  std::vector<Band> across = view.across < 0 ? whole : bands_of(layout, view.across, most);
  std::vector<Tile> tiles;
  for (const Band& row : down)
    for (const Band& column : across) {
      tiles.push_back({slice, {}});
      Box& box = tiles.back().box;
      if (view.down >= 0) box.lo[view.down] = row.lo, box.hi[view.down] = row.hi;
      if (view.across >= 0) box.lo[view.across] = column.lo, box.hi[view.across] = column.hi;
    }
  std::vector<std::vector<std::int32_t>> cells(to_index(layout.cell_count()));
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position)
    cells[to_index(layout.cell_of(position))].push_back(position);
  for (Tile& tile : tiles) {
    std::vector<std::int32_t>& all = tile.positions;
    for (const std::vector<std::int32_t>& cell : cells)
      if (!cell.empty() && layout.holds_some(cell.front(), tile.box))
        all.insert(all.end(), cell.begin(), cell.end());
    std::sort(all.begin(), all.end());
  }
  std::erase_if(tiles, [](const Tile& tile) { return tile.positions.empty(); });
  return tiles;
}

bool shards_joined(const Layout& layout, const TileView& view) {
  std::size_t most = most_bands(layout, view);
  for (int dim : {view.down, view.across})
    if (dim >= 0 && run_count(layout, dim) > most) return true;
  return false;
}

std::string slice_text(const Box& box, const Shape& shape) {
  std::vector<std::string> parts;
  for (int d = 0; d < box.dims(); ++d)
    parts.push_back(
        box.lo[d] == 0 && box.hi[d] == shape[d] ? ":" : fmt::format("{}:{}", box.lo[d], box.hi[d]));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

std::string holders_text(const Layout& layout, const std::vector<std::int32_t>& positions) {
  std::map<std::vector<std::int32_t>, std::vector<Rank>> by_addend;
  std::string sign = ",";
  for (std::int32_t position : positions) {
    MeshCoordinate coordinate = layout.mesh().coordinate(position);
    std::vector<std::int32_t> addend;
    for (int axis = 0; axis < std::ssize(layout.placements()); ++axis) {
      const Placement& placement = layout.placement(axis);
      if (!placement.is_partial()) continue;
      addend.push_back(coordinate[to_index(axis)]);
      bool added = placement.op == ReduceOp::Sum || placement.op == ReduceOp::Avg;
      sign = added ? " + " : fmt::format(" {} ", reshard::text(placement.op));
    }
    by_addend[addend].push_back(layout.mesh().rank_at(position));
  }
  std::vector<std::string> groups;
  for (auto& [addend, ranks] : by_addend) {
    std::sort(ranks.begin(), ranks.end());
    groups.push_back(ranks_text(ranks));
  }
  return fmt::format("{}", fmt::join(groups, sign));
}

}  // namespace reshard::sim
