// SPDX-License-Identifier: BSD-3-Clause
// Requests or a plan carried through once: planned, proved, counted, timed, its bytes moved,
// reported. Command line and C API both work on a Job, so that nothing is planned twice for another
// report.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/topology/topology.h"
#include "sim/check/check_file.h"
#include "sim/report/run_report.h"
#include "sim/study/run_facts.h"
#include "sim/study/studies.h"

namespace reshard::sim {

// The topology of that name or file ("": the default with enough nodes), checked to have a device
// for every rank up to `highest`.
std::shared_ptr<const Topology> topology_for(const std::string& spec, Rank highest);

// What a job is about: requests that are to be planned together, or a plan from elsewhere, of any
// number of tensors.
struct Subject {
  std::vector<Request> requests = {};
  std::shared_ptr<const Plan> plan = {};  // if set, in place of the requests
  std::string topology = {};              // that the requests' file names; used if no other is
  Stages stages = {};                     // of the requests
  std::shared_ptr<const ModelLayouts> layouts = {};  // if the requests are those of layouts
  Rank highest_rank() const;
};

class Job {
 public:
  // Throws what Studies::of throws.
  Job(const Subject& subject, std::shared_ptr<const Topology> topology, const PlannerRow& planner,
      const StudyOptions& options);

  const Plan& plan() const { return study_->plan(); }  // of the tensors
  // The buffers that the plan's requests are made from; null: none.
  const StoredRequests* stored() const { return layouts_ ? layouts_->requests.get() : nullptr; }
  Study& study() const { return *study_; }

  // Has the planner that was requested (a plan from elsewhere has its own) and the state of the
  // cache.
  RunReport report(bool with_path) const;
  // The same, with PyTorch's estimate and its known defects.
  RunReport report_with_torch(bool with_path) const;
  // Adds to the report how long the plan's tensors take if the studies' planner plans them
  // together, if that is faster.
  void add_as_one(RunReport& report);
  // Moves the bytes, within the budget, and compares them. A plan from elsewhere cannot be made
  // again for a smaller tensor: it is moved at full size or not at all.
  DataReport moved(std::int64_t budget_bytes) const;
  // The same if it takes no more than the budget at full size: data in buffers cannot be reduced.
  DataReport moved_if_within(std::int64_t budget_bytes) const;

 private:
  bool from_elsewhere_, cold_;
  std::shared_ptr<const ModelLayouts> layouts_;
  Studies studies_;
  std::shared_ptr<Study> study_;
};

// Jobs of more shards (tensors times ranks) are not planned only to report that it would be faster.
inline constexpr std::size_t kMostShardsTried = std::size_t{1} << 16;

DataReport not_moved(std::span<const Request> tensors, std::string why);

}  // namespace reshard::sim
