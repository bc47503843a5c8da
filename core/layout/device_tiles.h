// SPDX-License-Identifier: BSD-3-Clause
// XLA's shardings: so many tiles of each dim, and the device of each.
#pragma once

#include "core/base/cursor.h"
#include "core/layout/layout.h"

namespace reshard {

// Reads "{devices=[2,1,4]<=[8] last_tile_dim_replicate}" and what else is in such braces
// (sharding_text.h), to the end of the text.
PlacementList read_device_tiles(Cursor& cursor, const Mesh& mesh, const Shape& shape);

}  // namespace reshard
