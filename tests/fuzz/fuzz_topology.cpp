// SPDX-License-Identifier: BSD-3-Clause
// Topology files. Accepted ones are built (at most 64 devices, for speed), written and read back to
// the same bytes.
#include "core/topology/topology_text.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    TopologyDescription description = parse_topology(fuzz::text_of(data, size), "input.topo");
    std::string written = to_text(description);
    if (to_text(parse_topology(written, "written.topo")) != written)
      fuzz::broken("a topology is not read back:\n" + written);
    if (std::int64_t{description.devices} * description.nodes > 64) return;
    Topology topology = build_topology(description, std::nullopt);
    for (std::int32_t a = 0; a < topology.devices(); ++a)
      for (std::int32_t b = 0; b < topology.devices(); ++b)
        if (a != b && topology.route(Rank{a}, Rank{b}).resources.empty())
          fuzz::broken("a route that crosses nothing");
  });
}
