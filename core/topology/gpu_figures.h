// SPDX-License-Identifier: BSD-3-Clause
// Peak rates of a GPU's memory and of its matrix products: from the machine's figures, else from
// the data sheets of its class (P100, V100, T4, A100, H100, B200, B300, GeForce and RTX boards;
// dense, f32 without TF32).
#pragma once

#include <cstdint>
#include <optional>

#include "core/topology/machine.h"

namespace reshard {

struct GpuFigures {
  std::int64_t memory_bytes_per_s;
  std::int64_t mega_f64, mega_f32, mega_f16;  // products, in 10^6 operations per second
};
// nullopt for a machine that does not state its GPUs' class.
std::optional<GpuFigures> gpu_figures(const Machine& machine);

// The data-sheet figure of a class (Machine::compute_capability). A class below the lowest known
// one gets the figure of the lowest. 0 for figures other than GpuMemory, GpuF64, GpuF32 and GpuF16.
std::int64_t usual_figure(Figure which, std::int32_t compute_capability);

}  // namespace reshard
