// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/pipeline.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/file_kinds.h"
#include "core/base/units.h"
#include "core/text/plan_text.h"
#include "sim/machines/presets.h"
#include "sim/store/data_check.h"
#include "sim/store/store.h"
#include "tools/cli/input_files.h"

namespace reshard::tools {

std::vector<NamedFile> inputs_of(const RequestOptions& request, const MachineOptions& machine) {
  std::vector<NamedFile> out{{sim::file_of(machine.topology), "--topology"}};
  for (const std::string& file : request.plan_files) out.push_back({file, "--plan"});
  return out;
}

Studied::Studied(const Subject& subject, const MachineOptions& machine,
                 const sim::StudyOptions& options)
    : from_file(subject.plan != nullptr),
      cold(machine.cold),
      studies(topology_for(machine.topology, subject.highest_rank()), planner_of(machine), options),
      study(from_file ? studies.of(subject.plan) : studies.of(*subject.request)) {}

sim::RunReport Studied::report() const {
  sim::RunReport report = sim::report_on(*study);
  if (!from_file) report.planner_asked = studies.planner().name;
  report.cache = studies.cache_statistics();
  if (cold) report.first_use = study->first_use();
  return report;
}

sim::DataReport Studied::moved(std::int64_t budget_bytes) const {
  const Plan& plan = study->plan();
  if (from_file && sim::store_bytes(plan) > budget_bytes)
    return not_moved(plan,
                     "a plan from a file cannot be made smaller, and its full size is above the "
                     "data budget");
  if (!from_file) return tools::moved(studies, study->shared_plan(), budget_bytes);
  return sim::move_and_check(study->shared_plan(), {}, budget_bytes, memory_of_machine_bytes());
}

sim::DataReport moved(const sim::Studies& studies, const std::shared_ptr<const Plan>& plan,
                      std::int64_t budget_bytes) {
  // Plans for shrunk tensors are not the command's: they stay out of its cache.
  sim::MakePlan replan = [&](const Request& smaller) { return studies.like(*plan, smaller); };
  return sim::move_and_check(plan, replan, budget_bytes, memory_of_machine_bytes());
}

sim::DataReport not_moved(const Plan& plan, std::string why) {
  sim::DataReport report;
  if (plan.tensors.size() == 1) report.shape = plan.request().shape();
  report.note = std::move(why);
  return report;
}

std::int64_t memory_of_machine_bytes() {
  std::int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  std::int64_t bytes =
      pages > 0 && page > 0 ? pages * page : std::numeric_limits<std::int64_t>::max();
  // In a control group without a limit the file contains "max".
  std::int64_t limit = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit) bytes = std::min(bytes, limit);
  return bytes;
}

std::shared_ptr<const Topology> topology_for(const std::string& spec, Rank highest) {
  if (spec.empty())
    return std::make_shared<const Topology>(sim::default_topology(to_int(highest) + 1));
  auto topology = std::make_shared<const Topology>(sim::find_topology(spec));
  sim::require_devices(*topology, to_int(highest));
  return topology;
}

sim::StudyOptions study_options(const MachineOptions& machine) {
  sim::StudyOptions options;
  options.memory_limit_bytes = memory_limit_of(machine);
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

Subject subject_of(const RequestOptions& options, const MachineOptions& machine) {
  Subject subject;
  if (options.plan_files.empty()) {
    subject.request = request_of(options);
    return subject;
  }
  refuse_both(!machine.planner.empty(), "--planner", "--plan");
  refuse_both(machine.cache_size >= 0, "--plan-cache", "--plan");
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
      throw InputError(std::string(name) +
                       ": the request of --plan FILE stands in the file; give one or the other");
  std::vector<Plan> plans;
  for (const std::string& file : options.plan_files) plans.push_back(plan_from(file));
  subject.plan =
      std::make_shared<const Plan>(plans.size() == 1 ? std::move(plans.front()) : join(plans));
  return subject;
}

std::int64_t data_budget_of(const DataOptions& options) {
  refuse_both(options.how == "proof" && !options.budget.empty(), "--data-budget", "--data proof");
  return options.budget.empty() ? kDefaultDataBudgetBytes
                                : parse_bytes(options.budget, "--data-budget");
}

}  // namespace reshard::tools
