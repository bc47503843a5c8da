// SPDX-License-Identifier: BSD-3-Clause
// An executor that goes through the C API alone: the plan as text, one program per rank, one thread
// per rank, messages through mailboxes in this process.
#pragma once

#include "core/plan/executor.h"

namespace reshard::test {

class CapiExecutor : public Executor {
 public:
  std::string_view name() const override { return "capi"; }
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override;
};

}  // namespace reshard::test
