// SPDX-License-Identifier: BSD-3-Clause
// The entry points of the NCCL backend, for the registry.
#pragma once

#include <memory>

#include "backends/registry/backend.h"

namespace reshard::backends::nccl {

BackendStatus probe();
std::unique_ptr<Executor> make(const BackendOptions& options);

}  // namespace reshard::backends::nccl
