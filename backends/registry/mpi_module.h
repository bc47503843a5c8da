// SPDX-License-Identifier: BSD-3-Clause
// The interface of the shared modules that contain the MPI backend. Modules and program are built
// together; the version check catches files from two different builds.
#pragma once

#include <cstdint>
#include <string>

#include "backends/registry/backend.h"

namespace reshard::backends {

inline constexpr std::int64_t kMpiModuleVersion = 1;

struct MpiModule {
  std::int64_t version;
  std::string (*library)();                          // "Open MPI 4.1.4"; starts nothing
  Executor* (*make)(const BackendOptions& options);  // the caller must delete it
};

// The module's only symbol: `extern "C" const MpiModule* reshard_mpi_module()`.
inline constexpr const char* kMpiModuleSymbol = "reshard_mpi_module";

}  // namespace reshard::backends
