// SPDX-License-Identifier: BSD-3-Clause
// A GPU through the CUDA runtime. Streams and events are the runtime's own: a Stream is a
// cudaStream_t, an Event a cudaEvent_t.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/device/device.h"

namespace reshard::backends {

// Throws BackendError with the runtime's reason where the GPU cannot be had.
std::unique_ptr<Device> make_cuda_device(int index);

// What the runtime finds on this machine, without taking hold of any GPU. Never throws.
struct CudaMachine {
  std::vector<std::string> gpus;  // "NVIDIA H200, 139.8 GiB", by index
  std::vector<std::string> ids;   // by index: the same in every process that sees the GPU, whatever
                                  // its index there, and no other GPU's
  std::string versions;           // "CUDA runtime 13.0, driver for 13.0"
  std::string why_none;           // where there are none
};
CudaMachine look_for_gpus() noexcept;

}  // namespace reshard::backends
