// SPDX-License-Identifier: BSD-3-Clause
// The CUDA backend's executor on the device made of host memory.
#pragma once

#include <cstdint>
#include <memory>

#include "core/plan/executor.h"

namespace reshard::test {

// The seed determines the order in which the device's work runs; 0 is the laziest order.
std::unique_ptr<Executor> cuda_on_host_device(std::uint64_t seed);

}  // namespace reshard::test
