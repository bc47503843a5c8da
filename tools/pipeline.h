// SPDX-License-Identifier: BSD-3-Clause
// From the command line's options to a study (sim/study): the request or the file, the topology,
// and what this machine's memory allows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/topology/topology.h"
#include "sim/study/data_report.h"
#include "sim/study/studies.h"
#include "tools/options.h"

namespace reshard::tools {

inline constexpr std::int64_t kDefaultDataBudgetBytes = std::int64_t{2} << 30;

// Bytes that this process may take: the machine's memory, or its control group's limit where that
// is less.
std::int64_t memory_of_machine_bytes();

// The topology that the option names, or the default that holds the ranks; checked to hold them.
std::shared_ptr<const Topology> topology_for(const std::string& spec, const Request& request);

// What the machine options say of the studies of a command.
sim::StudyOptions study_options(const MachineOptions& machine);

// A request from the options, or the plan of --plan FILE.
struct Subject {
  std::optional<Request> request;
  std::shared_ptr<const Plan> plan;  // set for --plan
  const Request& asked() const { return plan ? plan->request() : *request; }
  std::shared_ptr<sim::Study> studied(sim::Studies& studies) const {
    return plan ? studies.of(plan) : studies.of(*request);
  }
  // As reports name it: a plan from a file is its own planner's.
  std::string planner_asked(const sim::Studies& studies) const {
    return plan ? plan->planner : std::string(studies.planner().name);
  }
};
Subject subject_of(const RequestOptions& options);

// Moves the bytes of a study's plan within the budget and compares them. A plan `from_file` is
// moved at full size or not at all.
sim::DataReport moved(const sim::Study& study, const sim::Studies& studies,
                      std::int64_t budget_bytes, bool from_file);

sim::DataReport not_moved(const Plan& plan, std::string why);

std::int64_t data_budget_of(const std::string& text);

}  // namespace reshard::tools
