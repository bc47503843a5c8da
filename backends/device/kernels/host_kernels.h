// SPDX-License-Identifier: BSD-3-Clause
// The kernels compiled for the CPU: all memory is host memory. For tests on machines without a GPU.
#pragma once

#include "backends/device/device.h"

namespace reshard::backends::host_kernels {

void copy(const CopyLaunch& launch);
void fold(const FoldLaunch& launch);

}  // namespace reshard::backends::host_kernels
