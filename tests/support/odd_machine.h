// SPDX-License-Identifier: BSD-3-Clause
// Drawn machines such as nobody builds: odd rates, no latency, one NIC for many, routes of pairs
// and groups over whatever there is.
#pragma once

#include "core/topology/topology.h"
#include "tests/support/prng.h"

namespace reshard::test {

// 1 to 6 devices in each of 1 to 4 nodes, at least two in all.
Topology odd_machine(Prng& prng);

}  // namespace reshard::test
