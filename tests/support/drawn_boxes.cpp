// SPDX-License-Identifier: BSD-3-Clause
// Random layouts of explicit boxes. A layout that must hold the whole tensor cuts it into slabs and
// gives each to one or two ranks, in random order; other ranks hold boxes from anywhere.
#include <algorithm>
#include <optional>
#include <set>

#include "core/layout/layout.h"
#include "tests/support/cases.h"

namespace reshard::test {
namespace {

using Parts = std::vector<Part>;

// Cuts a box into up to `most`.
std::vector<Box> cut_box(Prng& prng, const Box& box, std::int64_t most) {
  std::vector<Box> out{box};
  for (std::int64_t i = 1; i < most; ++i) {
    auto at = static_cast<std::size_t>(prng.below(static_cast<std::int64_t>(out.size())));
    int dim = static_cast<int>(prng.below(box.dims()));
    Box low = out[at], high = low;
    if (low.extent(dim) < 2) continue;
    low.hi[dim] = high.lo[dim] = low.lo[dim] + prng.between(1, low.extent(dim) - 1);
    out[at] = low;
    out.push_back(high);
  }
  return out;
}

// A shard of any shape whose boxes come from anywhere; none if they do not find room.
std::optional<Parts> draw_shard(Prng& prng, const Shape& shape) {
  Shape local;
  for (std::int64_t extent : shape) local.push_back(prng.between(1, extent));
  Parts out;
  for (const Box& box : cut_box(prng, box_of(local), prng.between(1, 5))) {
    bool found = false;
    for (int attempt = 0; attempt < 12 && !found; ++attempt) {
      DimVector lo;
      for (int d = 0; d < shape.size(); ++d)
        lo.push_back(prng.between(0, shape[d] - box.extent(d)));
      Box global = box_at(lo, box.extents());
      found = std::none_of(out.begin(), out.end(), [&](const Part& other) {
        return !intersect(other.box, global).empty();
      });
      if (found) out.push_back({global, box.lo});
    }
    if (!found) return std::nullopt;
  }
  // Padding: the room of a box that is left out.
  if (out.size() > 1 && prng.one_in(3))
    out.erase(out.begin() + prng.below(static_cast<std::int64_t>(out.size())));
  return out;
}

// Slabs along one dim, each of one or two ranks, stacked in random order.
void draw_slabs(Prng& prng, const Shape& shape, std::vector<Parts>& lists) {
  int dim = static_cast<int>(prng.below(shape.size()));
  auto ranks = static_cast<std::int64_t>(lists.size());
  std::vector<Box> slabs;
  for (std::int64_t lo = 0, hi = 0; lo < shape[dim]; lo = hi) {
    hi = std::min(shape[dim], lo + prng.between(1, 1 + shape[dim] / 3));
    Box slab = box_of(shape);
    slab.lo[dim] = lo;
    slab.hi[dim] = hi;
    slabs.push_back(slab);
  }
  prng.shuffle(slabs);
  std::vector<std::int64_t> length(lists.size(), 0);
  for (const Box& slab : slabs) {
    std::set<std::int64_t> holders{prng.below(ranks)};
    if (prng.one_in(3)) holders.insert(prng.below(ranks));
    for (std::int64_t rank : holders) {
      auto at = static_cast<std::size_t>(rank);
      DimVector lo(shape.size(), 0);
      lo[dim] = length[at];
      length[at] += slab.extent(dim);
      lists[at].push_back({slab, lo});
    }
  }
}

}  // namespace

Layout draw_boxes(Prng& prng, const Shape& shape, DType dtype, const MeshRef& mesh, bool whole) {
  std::vector<Parts> lists(static_cast<std::size_t>(mesh->size()));
  std::vector<std::int32_t> list_of;
  for (std::int32_t rank = 0; rank < mesh->size(); ++rank) list_of.push_back(rank);
  bool empty = element_count(shape) == 0;
  if (whole && !empty) draw_slabs(prng, shape, lists);
  for (Parts& list : lists)
    if (list.empty() && !empty && !prng.one_in(6)) list = draw_shard(prng, shape).value_or(Parts{});
  if (prng.one_in(2))
    for (std::int32_t& list : list_of)
      if (!whole && prng.one_in(3)) list = static_cast<std::int32_t>(prng.below(mesh->size()));
  return Layout(shape, dtype, mesh, ExplicitBoxes(shape, *mesh, std::move(lists), list_of));
}

DrawnPair draw_pair_with_boxes(Prng& prng, std::int32_t world) {
  for (;;) {
    DrawnPair pair = draw_pair(prng, world);
    const Layout &from = pair.source, &to = pair.destination;
    if (from.dims() == 0) continue;
    std::int64_t which = prng.below(3);
    Layout source =
        which == 1 ? from : draw_boxes(prng, from.shape(), from.dtype(), from.mesh_ref(), true);
    Layout destination =
        which == 0 ? to : draw_boxes(prng, to.shape(), to.dtype(), to.mesh_ref(), prng.one_in(2));
    return {std::move(source), std::move(destination)};
  }
}

}  // namespace reshard::test
