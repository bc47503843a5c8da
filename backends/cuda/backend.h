// SPDX-License-Identifier: BSD-3-Clause
// The entry points of the CUDA backend, for the registry.
#pragma once

#include <memory>

#include "backends/registry/backend.h"

namespace reshard::backends::cuda {

BackendStatus probe();
std::unique_ptr<Executor> make(const BackendOptions& options);

}  // namespace reshard::backends::cuda
