// SPDX-License-Identifier: BSD-3-Clause
// The backends that --backend names: `local`, which is the store in this process, and those of the
// registry.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/registry/backend.h"
#include "core/plan/executor.h"
#include "tools/cli/validate/executor_run.h"

namespace CLI {
class App;
}  // namespace CLI

namespace reshard::tools {

// Which backend runs plans, how often, and the backend's own options.
struct CarrierOptions {
  std::string backend = "local", rendezvous;
  RunCounts counts;
  std::int64_t time_limit_s = 300;
  int device = -1;
  bool declared_order = false;
  std::string communicators;
};

void add_carrier_options(CLI::App& command, CarrierOptions& options);

// Warnings go to standard error, from the first process only.
backends::BackendOptions backend_options(const CarrierOptions& options);

// `local`, then the registry's.
std::vector<const backends::BackendRow*> carriers();
// Null where there is none of that name.
const backends::BackendRow* find_carrier(std::string_view name);

struct BackendInfo {
  const backends::BackendRow& row;
  backends::BackendStatus status;
  std::string name() const { return std::string(row.name); }
};

// Probes every backend now.
std::vector<BackendInfo> backend_infos();
BackendInfo backend_info(std::string_view name);
// "mpi: usable, Open MPI 4.1.4", "mpi: not usable, reshard was built without MPI (apt install
// ...)".
std::string text(const BackendInfo& backend);

// Throws InputError naming --backend with the reason where it is not usable, and as the backend's
// own make() does.
std::unique_ptr<Executor> make_executor(const BackendInfo& backend,
                                        const backends::BackendOptions& options);

// Picoseconds on a monotonic clock.
std::int64_t steady_ps();

}  // namespace reshard::tools
