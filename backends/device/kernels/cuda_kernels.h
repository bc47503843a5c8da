// SPDX-License-Identifier: BSD-3-Clause
// The kernels compiled for the GPU, launched on a stream of the current device. If a launch fails
// they throw Thrust's exception (a std::exception).
#pragma once

#include <cuda_runtime_api.h>

#include "backends/device/device.h"

namespace reshard::backends::cuda_kernels {

void copy(const CopyLaunch& launch, cudaStream_t stream);
void fold(const FoldLaunch& launch, cudaStream_t stream);

}  // namespace reshard::backends::cuda_kernels
