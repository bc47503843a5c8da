// SPDX-License-Identifier: BSD-3-Clause
// The cases that sweeps run over: every small one of a kind, and seeded draws from all that a
// request can say.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/layout/request.h"
#include "tests/support/oracle.h"
#include "tests/support/prng.h"

namespace reshard::test {

// A layout with its oracle, worked out once and used in many pairs.
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

// Every list of one of `choices` per axis.
std::vector<std::vector<Placement>> all_placements(const std::vector<Placement>& choices,
                                                   std::size_t axes);

// Visits all ordered pairs of layouts of one shape on one mesh, for each shape; both sides take
// every list of `choices`. Returns how many pairs that was.
std::int64_t all_small_cases(const std::vector<Shape>& shapes, DType dtype,
                             const std::vector<std::int32_t>& mesh,
                             const std::vector<Placement>& choices, const VisitPair& visit);

// Two layouts that form a request or a forbidden one, from everything that a request can say: 0 to
// 8 dims, empty ones among them; 1 to 5 axes, of size 1 among them; all dtypes and operators;
// strided shards, shard orders, permuted ranks; the same mesh, or a second one that is the same
// ranks in another shape, overlaps the first, or is disjoint from it. Small: at most 12 ranks a
// mesh, all below kDrawnRanks, and some hundred elements.
inline constexpr std::int32_t kDrawnRanks = 40;
struct DrawnPair {
  Layout source, destination;
};
DrawnPair draw_pair(Prng& prng);
// The same within ranks 0 .. world-1, world at least 1, meshes of up to `world` ranks.
DrawnPair draw_pair(Prng& prng, std::int32_t world);
// The request of a drawn pair; none where the pair is forbidden.
std::optional<Request> draw_request(Prng& prng);

}  // namespace reshard::test
