// SPDX-License-Identifier: BSD-3-Clause
// The plans of a trace's redistributions: each different one is planned once, on all processors,
// and proved while others are planned and timed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/plan.h"
#include "sim/store/data_check.h"
#include "sim/study/studies.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

// A (redistribution, transport) of the trace.
struct DifferentLine {
  const TraceRedistribute* job = nullptr;
  std::optional<TransportKind> transport;
  OpId first{0};  // the first operation with it
  std::shared_ptr<Study> study;
  std::int64_t bytes_received = 0;
  std::string text;
  DataReport data = {};
};

class LinePlans {
 public:
  // Called with "planning" or "moving data".
  using Progress = std::function<void(std::string_view stage, std::size_t done, std::size_t total)>;

  // Keeps references to all three.
  LinePlans(const Trace& trace, Studies& studies, const Progress& progress)
      : trace_(trace), studies_(studies), progress_(progress) {}

  // Throws InputError "FILE:LINE: ..." for a redistribution that cannot be planned, and, if its
  // bytes are to be moved, for boxes that cannot be.
  void make(bool move_bytes);
  // Waits for the proofs. Throws CheckFailure if one fails. Nothing may be reported before.
  void require_proofs() const;
  // Moves the bytes of each different line, within the budget, and compares them.
  void move(std::int64_t budget_bytes_each);

  // In order of first appearance.
  std::span<const DifferentLine> different() const { return different_; }
  // By operation; null for those that are not redistributions.
  const std::vector<std::shared_ptr<const Plan>>& plans() const { return plans_; }
  // `op` must be a redistribution.
  const DifferentLine& different_of(std::size_t op) const {
    return different_[different_by_op_[op]];
  }
  // The highest peak of any rank in any of the plans.
  std::int64_t peak_bytes_max() const { return peak_bytes_max_; }

 private:
  void plan_ahead(bool move_bytes);

  const Trace& trace_;
  Studies& studies_;
  const Progress& progress_;
  std::vector<std::shared_ptr<const Plan>> plans_;
  std::vector<std::size_t> different_by_op_;
  std::vector<DifferentLine> different_;
  std::int64_t peak_bytes_max_ = 0;
};

}  // namespace reshard::sim
