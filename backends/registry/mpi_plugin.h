// SPDX-License-Identifier: BSD-3-Clause
// The MPI backend behind dlopen: the program itself does not need an MPI library to start, and
// which MPI it meets is decided by who launched it.
#pragma once

#include <memory>

#include "backends/registry/backend.h"

namespace reshard::backends {

// Rows of the registry.
BackendStatus probe_mpi();
std::unique_ptr<Executor> make_mpi(const BackendOptions& options);

}  // namespace reshard::backends
