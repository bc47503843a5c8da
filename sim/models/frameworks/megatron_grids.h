// SPDX-License-Identifier: BSD-3-Clause
// The coordinates of each rank in Megatron-Core, which has two grids of the same ranks
// (core/parallel_state.py, RankGenerator).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/models/parallelism.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

struct MegatronGrids {
  enum Axis : std::uint8_t { Tp, Cp, Ep, Dp, Pp };
  static constexpr std::size_t kAxisCount = 5;
  struct GridAxis {
    std::int64_t size = 1, stride = 1;
  };
  using Grid = std::array<GridAxis, kAxisCount>;

  Grid dense, expert;  // in `expert`, `Tp` is etp and `Dp` is edp

  // The rank at three coordinates of a grid in a stage.
  static std::int64_t rank(const Grid& grid, const std::array<std::int64_t, 3>& at,
                           std::int64_t stage, const std::array<Axis, 3>& axes);
  std::int64_t ranks() const;
};

// Reads the words tp, cp, dp, pp, ep, etp (default: tp) and order (tp-cp-ep-dp-pp, the first
// fastest). Throws InputError if the two grids do not fit each other.
MegatronGrids megatron_grids(const Model& model, Parallelism& options);

}  // namespace reshard::sim
