// SPDX-License-Identifier: BSD-3-Clause
// Shardings as other frameworks print them: JAX's PartitionSpec and NamedSharding, Shardy's
// #sdy.sharding, XLA's device tiles.
#pragma once

#include <optional>
#include <string_view>

#include "core/layout/layout.h"

namespace reshard {

// Nothing if the text has none of these forms:
//
//   PartitionSpec('dp', None)  P(('dp', 'tp'))        per dim the mesh axes that cut it, the
//   NamedSharding(mesh=Mesh('dp': 2), spec=P('dp'))   outermost first
//   #sdy.sharding<@mesh, [{"dp"}, {}]>
//   {devices=[2,1,4]<=[8] last_tile_dim_replicate}    tiles per dim, and which device holds which;
//   {devices=[2,1]0,1}  {replicated}                  device i is the i-th of the mesh's ranks,
//   GSPMDSharding({devices=[2,1]<=[2]})               ascending
//
// Throws InputError naming `field`, also if tiles do not follow the axes of the mesh, or if XLA
// would cut a dim that its tiles do not divide into other tiles than nested placements do.
std::optional<PlacementList> parse_sharding(std::string_view text, const Mesh& mesh,
                                            const Shape& shape, std::string_view field);

}  // namespace reshard
