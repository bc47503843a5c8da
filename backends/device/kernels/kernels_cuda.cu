// SPDX-License-Identifier: BSD-3-Clause
// Compiles the kernels for the GPU, to run on a CUDA stream.
#include "backends/device/kernels/cuda_kernels.h"

#include <thrust/execution_policy.h>

#include "backends/device/kernels/kernels.h"

namespace reshard::backends::cuda_kernels {

void copy(const CopyLaunch& launch, cudaStream_t stream) {
  kernels::copy(thrust::cuda::par_nosync.on(stream), launch);
}

void fold(const FoldLaunch& launch, cudaStream_t stream) {
  kernels::fold(thrust::cuda::par_nosync.on(stream), launch);
}

}  // namespace reshard::backends::cuda_kernels
