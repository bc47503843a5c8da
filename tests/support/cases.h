// SPDX-License-Identifier: BSD-3-Clause
// The cases that sweeps run over: every small case of a kind, and random cases of everything that a
// request can express, from a seed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/layout/request.h"
#include "tests/support/oracle.h"
#include "tests/support/prng.h"

namespace reshard::test {

MeshRef mesh_of(std::string_view text);  // "2x4"

// A layout with its oracle, computed once and used in many pairs.
struct SmallLayout {
  Layout layout;
  LayoutOracle oracle;
  explicit SmallLayout(Layout layout_in) : layout(std::move(layout_in)), oracle(layout) {}
};

using VisitPair = std::function<void(const SmallLayout& source, const SmallLayout& destination)>;

// Axis sizes of all meshes with at most `ranks` ranks, in ascending order of ranks:
//   single      one axis of 1 .. ranks
//   factored    every ordered factorisation into two or more axes of size at least 2, at most
//               `axes` of them
//   with_ones   1 x n and n x 1 for n = 1 .. ranks, each once
std::vector<std::vector<std::int32_t>> single_axis_meshes(std::int32_t ranks);
std::vector<std::vector<std::int32_t>> factored_meshes(std::int32_t ranks, int axes);
std::vector<std::vector<std::int32_t>> meshes_with_ones(std::int32_t ranks);

// Every list with one of `choices` per axis.
std::vector<std::vector<Placement>> all_placements(const std::vector<Placement>& choices,
                                                   std::size_t axes);

// Visits all ordered pairs of layouts of one shape on one mesh, for each shape; both sides take
// every list of `choices`. Returns the number of pairs.
std::int64_t all_small_cases(const std::vector<Shape>& shapes, DType dtype,
                             const std::vector<std::int32_t>& mesh,
                             const std::vector<Placement>& choices, const VisitPair& visit);

// Two layouts that form a valid or a forbidden request, from everything that a request can express:
// 0 to 8 dims, including empty ones; 1 to 5 axes, including axes of size 1; all dtypes and
// operators; strided shards, shard orders, permuted ranks; the same mesh, or a second one that has
// the same ranks in another shape, overlaps the first, or is disjoint from it. Small: at most 12
// ranks per mesh, all below kDrawnRanks, and a few hundred elements.
inline constexpr std::int32_t kDrawnRanks = 40;
struct DrawnPair {
  Layout source, destination;
};
DrawnPair draw_pair(Prng& prng);
// The same within ranks 0 .. world-1, where world is at least 1, with meshes of up to `world`
// ranks.
DrawnPair draw_pair(Prng& prng, std::int32_t world);
// Explicit boxes in random order on the ranks of a mesh, whose shards overlap in the tensor; with
// `whole`, all of them together hold the tensor. The tensor has at least 1 dim.
Layout draw_boxes(Prng& prng, const Shape& shape, DType dtype, const MeshRef& mesh, bool whole);
// A pair of which one layout, or both, is one of explicit boxes.
DrawnPair draw_pair_with_boxes(Prng& prng, std::int32_t world);
// The request of a random pair; none if the pair is forbidden.
std::optional<Request> draw_request(Prng& prng);
std::optional<Request> draw_request_with_boxes(Prng& prng, std::int32_t world = kDrawnRanks);
// 2 to 8 random requests, sometimes up to `most`, on a machine of so many devices; some of them
// occur several times.
std::vector<Request> draw_job(Prng& prng, std::int64_t devices, std::int64_t most = 40);

}  // namespace reshard::test
