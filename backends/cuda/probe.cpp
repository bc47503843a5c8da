// SPDX-License-Identifier: BSD-3-Clause
// Builds a CUDA executor from what is on this machine, or reports what is missing.
#include <fmt/core.h>

#include "backends/cuda/backend.h"
#include "backends/cuda/executor.h"
#include "backends/device/cuda_device.h"
#include "core/base/errors.h"

namespace reshard::backends::cuda {

BackendStatus probe() {
  CudaMachine machine = look_for_gpus();
  if (machine.gpus.empty())
    return {false, machine.why_none,
            "a GPU of compute capability 8.0 or newer and its NVIDIA driver"};
  return {true,
          fmt::format(
              "{}{} ({})", machine.gpus[0],
              machine.gpus.size() == 1 ? "" : fmt::format(" and {} more", machine.gpus.size() - 1),
              machine.versions),
          ""};
}

std::unique_ptr<Executor> make(const BackendOptions& options) {
  CudaMachine machine = look_for_gpus();
  if (machine.gpus.empty()) throw BackendError("CUDA", "looking for a GPU", machine.why_none, -1);
  int index = options.device < 0 ? 0 : options.device;
  if (to_index(index) >= machine.gpus.size())
    throw InputError(
        fmt::format("device: expected one of the {} GPUs of this machine (0 to {}), found {}",
                    machine.gpus.size(), machine.gpus.size() - 1, index));
  ExecutorOptions executor;
  executor.time_limit_s = options.time_limit_s;
  return std::make_unique<CudaExecutor>(make_cuda_device(index), executor);
}

}  // namespace reshard::backends::cuda
