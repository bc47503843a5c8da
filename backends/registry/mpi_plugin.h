// SPDX-License-Identifier: BSD-3-Clause
// The MPI backend, loaded with dlopen: the program starts without an MPI library, and the launcher
// decides which MPI is loaded.
#pragma once

#include <memory>

#include "backends/registry/backend.h"

namespace reshard::backends {

// The functions of the "mpi" row in registry.cpp.
BackendStatus probe_mpi();
std::unique_ptr<Executor> make_mpi(const BackendOptions& options);

}  // namespace reshard::backends
