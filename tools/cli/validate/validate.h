// SPDX-License-Identifier: BSD-3-Clause
// What `validate` does, so that tests can put executors of their own under it: a plan on real
// ranks, its bytes compared with the request and the store, its times set beside the engine's
//
// The same on one process and on many (agreement.h): every process plans and proves by itself and
// must come to the same plan; then all run it; then the root reports.
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
  std::optional<Subject> subject = {};  // where it was read before
};

// Collective over the executor's processes. Prints the report and writes the files that the options
// name, at the root; throws CheckNotHeld (Stopped, where there are several processes) after the
// report where values are wrong.
void validate_on(Executor& executor, const BackendInfo& backend, const ValidateOptions& options);

}  // namespace reshard::tools
