// SPDX-License-Identifier: BSD-3-Clause
// Shardings as others print them: JAX's PartitionSpec and NamedSharding, Shardy's #sdy.sharding,
// XLA's tiles of devices.
#pragma once

#include <optional>
#include <string_view>

#include "core/layout/layout.h"

namespace reshard {

// Nothing where the text has none of these forms:
//
//   PartitionSpec('dp', None)  P(('dp', 'tp'))       per dim the mesh axes that cut it, the first
//   the NamedSharding(mesh=Mesh('dp': 2), spec=P('dp'))  outermost #sdy.sharding<@mesh, [{"dp"},
//   {}]> {devices=[2,1,4]<=[8] last_tile_dim_replicate}   tiles per dim, and who holds which;
//   device i is {devices=[2,1]0,1}  {replicated}                 the i-th of the mesh's ranks,
//   ascending GSPMDSharding({devices=[2,1]<=[2]})
//
// Throws InputError naming `field`, also where tiles do not follow the axes of the mesh, and where
// XLA cuts a dim that its tiles do not divide otherwise than nested placements do.
std::optional<PlacementList> parse_sharding(std::string_view text, const Mesh& mesh,
                                            const Shape& shape, std::string_view field);

}  // namespace reshard
