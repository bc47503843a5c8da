// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/standins/cuda_on_host_device.h"

#include "backends/cuda/executor.h"
#include "tests/support/standins/host_device.h"

namespace reshard::test {

std::unique_ptr<Executor> cuda_on_host_device(std::uint64_t seed) {
  HostDeviceOptions options;
  options.seed = seed;
  return std::make_unique<backends::cuda::CudaExecutor>(std::make_unique<HostDevice>(options),
                                                        backends::cuda::ExecutorOptions{});
}

}  // namespace reshard::test
