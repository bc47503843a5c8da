// SPDX-License-Identifier: BSD-3-Clause
// Checks before and after a framework writes its side: a file of roles can have changed weights
// that the framework joins with others, and no weight may be left out.
#pragma once

#include <cstdint>

namespace reshard::sim {

struct Side;

// Which weights a framework joins to one buffer, and so needs together.
enum class Fusion : std::uint8_t { Files, InMemory, Serving, Megatron };

// Throws InputError "FIELD: ..." that names a weight and its role.
void require_parts(const Side& side, Fusion fusion);
// Throws InputError unless every tensor of the model is in a buffer of the side.
void require_all(const Side& side);

}  // namespace reshard::sim
