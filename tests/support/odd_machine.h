// SPDX-License-Identifier: BSD-3-Clause
// Random machines that nobody would build: odd rates, no latency, one NIC for many devices, routes
// of pairs and groups over any resources.
#pragma once

#include "core/topology/topology.h"
#include "tests/support/prng.h"

namespace reshard::test {

// 1 to 6 devices in each of 1 to 4 nodes, at least two in total.
Topology odd_machine(Prng& prng);

}  // namespace reshard::test
