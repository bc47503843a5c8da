// SPDX-License-Identifier: BSD-3-Clause
// Compiles the kernels for the CPU, for tests on machines without a GPU.
#include <thrust/execution_policy.h>

#include "backends/device/kernels/host_kernels.h"
#include "backends/device/kernels/kernels.h"

static_assert(THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CPP, "this file is for the host system");

namespace reshard::backends::host_kernels {

void copy(const CopyLaunch& launch) { kernels::copy(thrust::device, launch); }

void fold(const FoldLaunch& launch) { kernels::fold(thrust::device, launch); }

}  // namespace reshard::backends::host_kernels
