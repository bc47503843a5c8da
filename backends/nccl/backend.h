// SPDX-License-Identifier: BSD-3-Clause
// The NCCL backend as the registry has it.
#pragma once

#include <memory>

#include "backends/registry/backend.h"

namespace reshard::backends::nccl {

BackendStatus probe();
std::unique_ptr<Executor> make(const BackendOptions& options);

}  // namespace reshard::backends::nccl
