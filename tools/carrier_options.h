// SPDX-License-Identifier: BSD-3-Clause
// Options of a command that runs plans on a backend: which one, how often, and what the backend
// itself is told.
#pragma once

#include <cstdint>
#include <string>

#include "backends/registry/backend.h"
#include "tools/validate_run.h"

namespace CLI {
class App;
}

namespace reshard::tools {

struct CarrierOptions {
  std::string backend = "local", rendezvous;
  RunCounts counts;
  std::int64_t time_limit_s = 300;
  int device = -1;
  bool declared_order = false;
};

void add_carrier_options(CLI::App& command, CarrierOptions& options);
// Warnings go to standard error, from the first process.
backends::BackendOptions backend_options(const CarrierOptions& options);

}  // namespace reshard::tools
