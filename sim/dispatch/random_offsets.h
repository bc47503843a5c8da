// SPDX-License-Identifier: BSD-3-Clause
// Where in its generator's stream each rank draws for a sharded tensor, as in PyTorch's tracker on
// accelerators: replicas draw the same numbers, shards different ones, and afterwards all ranks are
// past the whole tensor. (PyTorch has no tracker for CPUs: all ranks draw the same numbers there.)
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/layout/mesh.h"
#include "core/ops/call.h"

namespace reshard::sim {

// Whether an operator draws, by its name with the overload.
bool is_random(std::string_view name);

struct RandomOffsets {
  std::vector<std::int64_t> starts;  // by position in the mesh, relative to the generator's offset
  std::int64_t after = 0;            // offset of all ranks afterwards
};
// `spec`: that of the first input, as the call takes it.
RandomOffsets random_offsets(const TensorSpec& spec, const Mesh& mesh);

}  // namespace reshard::sim
