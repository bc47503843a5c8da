// SPDX-License-Identifier: BSD-3-Clause
// What a GPU's memory and its products reach at most: as the machine says, else as data sheets of
// its class do (V100, A100, H100, B200, B300, GeForce and RTX boards; dense, f32 without TF32).
#pragma once

#include <cstdint>
#include <optional>

#include "core/topology/machine.h"

namespace reshard {

struct GpuFigures {
  std::int64_t memory_bytes_per_s;
  std::int64_t mega_f64, mega_f32, mega_f16;  // 10^6 operations a second of products
};
// None for a machine that says nothing of its GPUs.
std::optional<GpuFigures> gpu_figures(const Machine& machine);

// Of a class (Machine::compute_capability; below the first the first); 0 for figures that are none
// of these.
std::int64_t usual_figure(Figure which, std::int32_t compute_capability);

}  // namespace reshard
