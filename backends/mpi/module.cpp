// SPDX-License-Identifier: BSD-3-Clause
// Defines the one symbol of the shared module, which the registry looks up with dlsym.
#include "backends/mpi/executor.h"
#include "backends/mpi/session.h"
#include "backends/registry/mpi_module.h"

namespace {

using namespace reshard::backends;

reshard::Executor* make(const BackendOptions& options) {
  mpi::WorldOptions world;
  world.time_limit_s = options.time_limit_s;
  return std::make_unique<mpi::MpiExecutor>(world).release();
}

constexpr MpiModule kModule{kMpiModuleVersion, mpi::library_version, make};

}  // namespace

extern "C" __attribute__((visibility("default"))) const MpiModule* reshard_mpi_module() {
  return &kModule;
}
