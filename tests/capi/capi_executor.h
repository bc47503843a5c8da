// SPDX-License-Identifier: BSD-3-Clause
// Executors that use only the C API, and pass the plan as text. CapiExecutor: one program and one
// thread per rank, messages through mailboxes in this process. RingsExecutor: the same through
// rings in shared memory. AllRanksExecutor: all ranks with one call.
#pragma once

#include "core/plan/executor.h"

namespace reshard::test {

class CapiExecutor : public Executor {
 public:
  std::string_view name() const override { return "capi"; }
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override;
};

class RingsExecutor : public Executor {
 public:
  std::string_view name() const override { return "capi, rings"; }
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override;
};

class AllRanksExecutor : public Executor {
 public:
  std::string_view name() const override { return "capi, all ranks"; }
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override;
};

}  // namespace reshard::test
