// SPDX-License-Identifier: BSD-3-Clause
// The work of `validate`, separated so that tests can run it on their own executors: runs a plan on
// real ranks, compares its bytes with the request and the store, and its times with the engine's.
//
// It is the same on one process and on many (agreement.h): every process plans and proves for
// itself and must get the same plan; then all run it; then the root reports.
#pragma once

#include <optional>
#include <string>

#include "core/plan/executor.h"
#include "tools/cli/options.h"
#include "tools/cli/pipeline.h"
#include "tools/cli/validate/carriers.h"

namespace reshard::tools {

struct ValidateOptions {
  RequestOptions request;
  MachineOptions machine;
  OutputOptions output;
  CarrierOptions carrier;
  std::string data_budget, measurements;
  std::optional<sim::Subject> subject = {};  // if it has been read already
};

// Collective over the executor's processes. At the root, prints the report and writes the files
// that the options name. If values are wrong, throws CheckNotHeld after the report (Stopped if
// there are several processes).
void validate_on(Executor& executor, const BackendInfo& backend, const ValidateOptions& options);

}  // namespace reshard::tools
