// SPDX-License-Identifier: BSD-3-Clause
// A request on a machine, with everything that a packing is made from.
#pragma once

#include <memory>
#include <string_view>

#include "core/demand/commodities.h"
#include "core/demand/symmetry.h"
#include "core/packing/packing.h"
#include "sim/machines/presets.h"
#include "tests/core/planners/planner_cases.h"

namespace reshard {

// f32 from one mesh to another.
inline Request across(const char* shape, const char* mesh, const char* ranks, const char* from,
                      const char* to_mesh, const char* to_ranks, const char* to) {
  auto layout = [&](const char* text, const char* of, const char* placements) {
    return parse_layout(shape, "f32", std::make_shared<const Mesh>(parse_mesh(text, of)),
                        placements);
  };
  return Request(layout(mesh, ranks, from), layout(to_mesh, to_ranks, to));
}

struct PackingCase {
  PackingCase(Request request_in, std::string_view machine)
      : request(std::move(request_in)),
        topology(sim::find_topology(machine)),
        demand(request),
        commodities(demand),
        symmetry(commodities, topology),
        routes(topology, commodities.ranks(), symmetry) {}

  Packing pack_with(const PackingOptions& options) const {
    return pack(commodities, routes, symmetry, options);
  }
  Packing pack_for(std::int64_t target_ps, std::int32_t granules = 64) const {
    PackingOptions options;
    options.target_ps = target_ps;
    options.granules = granules;
    return pack_with(options);
  }

  Request request;
  Topology topology;
  Demand demand;
  Commodities commodities;
  Symmetry symmetry;
  RankRoutes routes;
};

}  // namespace reshard
