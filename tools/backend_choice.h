// SPDX-License-Identifier: BSD-3-Clause
// Backends as the user sees them: `local`, which is the store in this process, and those of the
// registry.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/registry/backend.h"
#include "core/plan/executor.h"

namespace reshard::tools {

struct BackendInfo {
  std::string name, purpose;
  backends::BackendStatus status;
};

std::vector<std::string> backend_names();
// Looks at every backend now.
std::vector<BackendInfo> backend_infos();
BackendInfo backend_info(const std::string& name);
// "mpi: usable, Open MPI 4.1.4", "mpi: not usable, reshard was built without MPI (apt install
// ...)".
std::string text(const BackendInfo& backend);

// Throws InputError naming --backend with the reason where it is not usable; what the backend
// throws.
std::unique_ptr<Executor> make_executor(const BackendInfo& backend,
                                        const backends::BackendOptions& options);

// Picoseconds on a clock that never goes back.
std::int64_t steady_ps();

}  // namespace reshard::tools
