// SPDX-License-Identifier: BSD-3-Clause
// Where in its generator's stream each rank draws for a sharded tensor, as PyTorch's tracker on
// accelerators has it: replicas draw the same numbers, shards different ones, and afterwards all
// ranks are behind the whole tensor. (On CPUs PyTorch has no tracker: there all ranks draw alike.)
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
  std::vector<std::int64_t> starts;  // by position in the mesh, from where the generator was
  std::int64_t behind = 0;           // of all ranks, once it is done
};
// `spec`: of the first input, as the call takes it.
RandomOffsets random_offsets(const TensorSpec& spec, const Mesh& mesh);

}  // namespace reshard::sim
