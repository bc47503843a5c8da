// SPDX-License-Identifier: BSD-3-Clause
// From the command line's options to a study (sim/study): the request or the plan file, the
// topology, and what this machine's memory allows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/topology/topology.h"
#include "sim/report/report.h"
#include "sim/study/run_facts.h"
#include "sim/study/study.h"
#include "tools/cli/input_files.h"
#include "tools/cli/options.h"
#include "tools/cli/output.h"
#include "tools/cli/output_files.h"

namespace reshard::tools {

inline constexpr std::int64_t kDefaultDataBudgetBytes = std::int64_t{2} << 30;

// The bytes that this process may use: the machine's memory, or its control group's limit if that
// is less.
std::int64_t memory_of_machine_bytes();

// The topology that the option names, or a default with all ranks up to `highest`. Throws
// InputError if the named topology does not have them.
std::shared_ptr<const Topology> topology_for(const std::string& spec, Rank highest);

// The files that the options name, for require_files.
std::vector<NamedFile> inputs_of(const RequestOptions& request, const MachineOptions& machine);

// What the machine options imply for a command's studies.
sim::StudyOptions study_options(const MachineOptions& machine);

// A request from the options, or the plan of --plan FILE (with any number of tensors).
struct Subject {
  std::optional<Request> request;
  std::shared_ptr<const Plan> plan;  // set for --plan only
  Rank highest_rank() const { return plan ? plan->ranks.back() : request->ranks().back(); }
};
Subject subject_of(const RequestOptions& options, const MachineOptions& machine);

// The subject, planned and studied on the machine that the options name.
struct Studied {
  Studied(const Subject& subject, const MachineOptions& machine, const sim::StudyOptions& options);
  // Names the planner that was asked for (for a plan from a file, the plan's own) and the cache.
  sim::RunReport report() const;
  // Moves the bytes within the budget and compares them. A plan from a file is moved at full size
  // or not at all.
  sim::DataReport moved(std::int64_t budget_bytes) const;

  bool from_file, cold;
  sim::Studies studies;
  std::shared_ptr<sim::Study> study;
};

// Moves the bytes of a plan of one of the studies' requests, or of a smaller similar one that fits
// the budget.
sim::DataReport moved(const sim::Studies& studies, const std::shared_ptr<const Plan>& plan,
                      std::int64_t budget_bytes);
sim::DataReport not_moved(const Plan& plan, std::string why);

std::int64_t data_budget_of(const DataOptions& options);

}  // namespace reshard::tools
