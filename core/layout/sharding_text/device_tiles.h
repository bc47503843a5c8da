// SPDX-License-Identifier: BSD-3-Clause
// XLA's shardings: the number of tiles of each dim, and the device of each tile.
#pragma once

#include "core/base/cursor.h"
#include "core/layout/layout.h"

namespace reshard {

// Reads a sharding in braces such as "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"
// (sharding_text.h lists the forms), to the end of the text.
PlacementList read_device_tiles(Cursor& cursor, const Mesh& mesh, const Shape& shape);

}  // namespace reshard
