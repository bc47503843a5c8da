// SPDX-License-Identifier: BSD-3-Clause
// A GPU through the CUDA runtime. Streams and events are the runtime's own: a Stream is a
// cudaStream_t, an Event is a cudaEvent_t.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/device/device.h"

namespace reshard::backends {

// Throws BackendError with the runtime's reason if the GPU cannot be used.
std::unique_ptr<Device> make_cuda_device(int index);

// What the runtime finds on this machine, without creating a context on any GPU. Never throws.
struct CudaMachine {
  std::vector<std::string> gpus;  // "NVIDIA H200, 139.8 GiB", by index
  std::vector<std::string> ids;   // by index: unique to the GPU, and the same in every process that
                                  // sees it, whatever its index there
  std::string versions;           // "CUDA runtime 13.0, driver for 13.0"
  std::string why_none;           // why there are none; else empty
};
CudaMachine look_for_gpus() noexcept;

}  // namespace reshard::backends
