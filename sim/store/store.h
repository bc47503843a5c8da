// SPDX-License-Identifier: BSD-3-Clause
// The store: runs a plan on real bytes with every rank's buffers in this process. It is the
// reference that real backends are compared with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "core/plan/executor.h"
#include "core/schedule/forwarding.h"
#include "sim/store/memory.h"

namespace reshard::sim {

struct StoreOptions {
  bool poison = false;  // see StoreMemory
  bool forward = true;  // no needless packing (core/schedule/forwarding.h)
  // A clock to measure steps with, in picoseconds from any origin; without one timelines are empty.
  // The store itself has none.
  std::function<std::int64_t()> now_ps = {};
};

class Store : public Executor {
 public:
  explicit Store(StoreOptions options = {}) : options_(std::move(options)) {}

  std::string_view name() const override { return "local"; }
  // Steps run in listed order, each for all ranks at once: all its ranks have the span of the step.
  // `fill` is called for the first rank of every set of source replicas. What `take` is given stays
  // valid as long as the prepared plan, which the store must outlive.
  std::unique_ptr<PreparedPlan> prepare(const Plan& plan) override;

  // Of the last run: bytes written by steps, and the most bytes that were allocated at a time.
  std::int64_t bytes_moved() const { return bytes_moved_; }
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  friend class PreparedStore;
  StoreOptions options_;
  std::int64_t bytes_moved_ = 0, peak_bytes_ = 0;
};

// The parts of a run, for callers that want to see between them.
void fill_sources(const Plan& plan, const FillSource& fill, StoreMemory& memory,
                  TensorId tensor = TensorId{0});
// Called after every step.
using StepDone = std::function<void(StepId step)>;
// Runs all steps, freeing every temporary after its last use; returns the bytes written.
std::int64_t run_steps(const Plan& plan, Forwarding& forwarding, StoreMemory& memory,
                       const StepDone& done = {});
void take_destinations(const Plan& plan, const TakeDestination& take, StoreMemory& memory,
                       TensorId tensor = TensorId{0});

}  // namespace reshard::sim
