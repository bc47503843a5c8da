// SPDX-License-Identifier: BSD-3-Clause
// The store: runs a plan on real bytes with every rank's buffers in this process. It is the reference that real backends are compared with.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/plan/executor.h"
#include "sim/store/memory.h"

namespace reshard::sim {

struct StoreOptions {
  bool poison = false;  // see StoreMemory
};

class Store : public Executor {
 public:
  explicit Store(const StoreOptions& options = {}) : options_(options) {}

  std::string_view name() const override { return "local"; }
  // Steps run in listed order. `fill` is called for the first rank of every set of source replicas. What `take` is given stays valid until run returns.
  // The store has no clock: the timeline is empty.
  Timeline run(const Plan& plan, const FillSource& fill, const TakeDestination& take) override;

  // Of the last run: bytes written by steps, and the most bytes that were allocated at a time.
  std::int64_t bytes_moved() const { return bytes_moved_; }
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  StoreOptions options_;
  std::int64_t bytes_moved_ = 0, peak_bytes_ = 0;
};

// The parts of a run, for callers that want to see between them.
void fill_sources(const Plan& plan, const FillSource& fill, StoreMemory& memory);
// Runs all steps, freeing every temporary after its last use; returns the bytes written.
std::int64_t run_steps(const Plan& plan, StoreMemory& memory);
void take_destinations(const Plan& plan, const TakeDestination& take, StoreMemory& memory);

}  // namespace reshard::sim
