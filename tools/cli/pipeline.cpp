// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/pipeline.h"

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/file_kinds.h"
#include "core/base/units.h"
#include "core/plan/join.h"
#include "core/text/plan_text.h"
#include "sim/job/job_file.h"
#include "sim/machines/presets.h"
#include "sim/store/data_check.h"
#include "tools/cli/input_files.h"

namespace reshard::tools {

std::vector<NamedFile> inputs_of(const RequestOptions& request, const MachineOptions& machine) {
  std::vector<NamedFile> out{{sim::file_of(machine.topology), "--topology"}};
  if (!request.requests_file.empty()) out.push_back({request.requests_file, "--requests"});
  for (const std::string& file : request.plan_files) out.push_back({file, "--plan"});
  return out;
}

std::shared_ptr<const Topology> topology_of(const sim::Subject& subject,
                                            const MachineOptions& machine) {
  return sim::topology_for(machine.topology.empty() ? subject.topology : machine.topology,
                           subject.highest_rank());
}

sim::Job job_of(const sim::Subject& subject, const MachineOptions& machine,
                const sim::StudyOptions& options) {
  return {subject, topology_of(subject, machine), planner_of(machine), options};
}

sim::StudyOptions study_options(const MachineOptions& machine) {
  sim::StudyOptions options;
  options.memory = memory_limits_of(machine);
  options.cache_capacity = machine.cache_size < 0 ? 1024 : machine.cache_size;
  if (!machine.transport.empty())
    options.transport.kind = sim::parse_transport(machine.transport, "--transport");
  options.transport.nccl_version = machine.nccl_version;
  options.cold = machine.cold;
  return options;
}

namespace {

// Names the kind of a file that is clearly not a plan.
Plan plan_of(const std::string& text, const std::string& file) {
  const FileKind* kind = file_kind(text);
  if (kind != nullptr && kind->id != "plan" && kind->id != "empty")
    throw InputError(
        fmt::format("{}:1: expected a plan, as reshard plan --emit plan prints it, found {}", file,
                    file_look(text)));
  return parse_plan(text, file);
}

Plan plan_from(const std::string& file) {
  return plan_of(read_input(file, kMaxPlanTextBytes), input_name(file));
}

}  // namespace

namespace {

// Throws InputError for an option that describes a request if a file already does.
void refuse_request_options(const RequestOptions& options, std::string_view file_option) {
  for (const auto& [given, name] : {std::pair{!options.mesh.empty(), "--mesh"},
                                    {!options.to_mesh.empty(), "--to-mesh"},
                                    {!options.ranks.empty(), "--ranks"},
                                    {!options.to_ranks.empty(), "--to-ranks"},
                                    {options.shape_given, "--shape"},
                                    {!options.dtype.empty(), "--dtype"},
                                    {!options.from.empty(), "--from"},
                                    {!options.to.empty(), "--to"},
                                    {!options.debug_line.empty(), "--debug-line"}})
    if (given)
      throw InputError(fmt::format("{}: the request of {} is in the file; give only one of the two",
                                   name, file_option));
}

}  // namespace

sim::Subject subject_of(const RequestOptions& options, const MachineOptions& machine) {
  sim::Subject subject;
  if (options.plan_files.empty() && options.requests_file.empty()) {
    subject.requests = {request_of(options)};
    return subject;
  }
  if (!options.requests_file.empty()) {
    refuse_both(!options.plan_files.empty(), "--requests", "--plan");
    refuse_request_options(options, "--requests FILE");
    return sim::read_job(options.requests_file);
  }
  refuse_both(!machine.planner.empty(), "--planner", "--plan");
  refuse_both(machine.cache_size >= 0, "--plan-cache", "--plan");
  refuse_request_options(options, "--plan FILE");
  std::vector<Plan> plans;
  for (const std::string& file : options.plan_files) plans.push_back(plan_from(file));
  subject.plan =
      std::make_shared<const Plan>(plans.size() == 1 ? std::move(plans.front()) : join(plans));
  return subject;
}

std::int64_t data_budget_of(const DataOptions& options) {
  refuse_both(options.how == "proof" && !options.budget.empty(), "--data-budget", "--data proof");
  return options.budget.empty() ? sim::kDefaultDataBudgetBytes
                                : parse_bytes(options.budget, "--data-budget");
}

}  // namespace reshard::tools
