// SPDX-License-Identifier: BSD-3-Clause
// Machines and requests for the tests of bounds.
#pragma once

#include <cstdint>
#include <vector>

#include "core/layout/request.h"
#include "core/topology/topology.h"
#include "tests/support/prng.h"

namespace reshard::test {

// Machines of 12 devices whose routes mix all kinds of hops.
std::vector<Topology> machines();
// Two nodes of eight devices: 450 GB/s inside, 50 GB/s between them, each way and per device,
// without latencies and without switches that reduce.
Topology two_nodes();

// f32, 0 to 3 dims of lengths 0 to 6 times `scale`, on any of the devices in any order: one mesh,
// or two that may overlap, of 1 to 3 axes; R, S, strided S and P(sum).
Request random_request(Prng& prng, std::int64_t devices, std::int64_t scale);

}  // namespace reshard::test
