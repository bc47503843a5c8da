// SPDX-License-Identifier: BSD-3-Clause
// The traces of traces/, replayed. Times are exact; where they follow from a formula it stands beside them.
#include <catch2/catch.hpp>

#include <map>

#include "core/base/errors.h"
#include "sim/machines/presets.h"
#include "tests/sim/replay/replay_case.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::Rig;

namespace {

ReplayReport shipped(const std::string& name, const char* planner = "auto", std::int64_t budget_bytes = std::int64_t{16} << 20) {
  Trace trace = read_trace("traces/" + name + ".jsonl");
  Topology topology = find_topology(trace.topology);
  return Rig(topology, planner).replay(trace, budget_bytes);
}

}  // namespace

TEST_CASE("print shipped", "[.]") {
  for (const char* name : {"llama3-70b-fsdp-to-tp", "dtensor-p2p-sweep", "pipeline-8x3090", "pipeline-8x3090-compute", "pipeline-8x3090-two-streams",
                           "pipeline-8x3090-two-streams-compute", "mlp-tp", "mlp-tp-sequence-parallel"})
    for (const char* planner : {"auto", "rule", "p2p", "hybrid"}) {
      ReplayReport r = shipped(name, planner);
      WARN(name << " " << planner << " time " << r.time_ps << " path " << r.path_bound_ps << " cut " << r.cut_bound_ps << " requests " << r.requests.size()
                << " different " << r.different_requests << " full " << r.data_full_size << " elements " << r.elements_checked << " bytes "
                << r.bytes_received_total << " digest " << r.digest.hex());
    }
}
