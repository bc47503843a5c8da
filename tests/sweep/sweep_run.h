// SPDX-License-Identifier: BSD-3-Clause
// One case of a sweep: request, planner, proof, store, oracle. Counts what happened and keeps the
// first failures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/planners/planner.h"
#include "sim/store/store.h"
#include "tests/support/cases.h"

namespace reshard::test {

struct SweepCounts {
  std::int64_t pairs = 0;      // of layouts
  std::int64_t forbidden = 0;  // pairs that are no request: InputError
  std::int64_t refused =
      0;  // (request, planner) answered with an InputError: meshes that the planner does not take
  std::int64_t runs = 0;  // plans made, proved, run and compared with the oracle
  friend bool operator==(const SweepCounts&, const SweepCounts&) = default;
};
std::string text(const SweepCounts& counts);

class Sweep {
 public:
  explicit Sweep(std::vector<std::string_view> planners);

  // Any failure is recorded, none throws.
  void run(const SmallLayout& source, const SmallLayout& destination);

  const SweepCounts& counts() const { return counts_; }
  // At most ten, described; empty when all went well.
  std::string failures() const;

 private:
  void run_planner(const Request& request, const PlannerRow& planner, const SmallLayout& source,
                   const SmallLayout& destination);
  void compare(const Plan& plan, const SmallLayout& source, const SmallLayout& destination);
  void fail(const Request& request, std::string_view planner, const std::string& what);

  std::vector<const PlannerRow*> planners_;
  Topology topology_;
  sim::Store store_;
  SweepCounts counts_;
  std::int64_t failed_ = 0;
  std::vector<std::string> failures_;
  // Of the request being run: shards by mesh position.
  std::vector<std::vector<std::byte>> sources_, destinations_;
};

// Whether the table in core/layout/request.h and the issue forbid this pair, decided here anew.
bool is_forbidden(const Layout& source, const Layout& destination);

}  // namespace reshard::test
