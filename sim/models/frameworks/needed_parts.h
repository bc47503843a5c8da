// SPDX-License-Identifier: BSD-3-Clause
// What a framework needs of a model whose roles a file has changed, and whether it has written all
// of it: so that no weight is missing where a writer looks for it, and none is left out.
#pragma once

#include <cstdint>

namespace reshard::sim {

struct Side;

// Which weights a framework joins to one buffer, and so needs together.
enum class Fusion : std::uint8_t { Files, InMemory, Serving, Megatron };

// Throws InputError "FIELD: ..." that names a weight and its role.
void require_parts(const Side& side, Fusion fusion);
// That every tensor of the model is in a buffer of the side; notes what is known to be in none.
void require_all(const Side& side);

}  // namespace reshard::sim
