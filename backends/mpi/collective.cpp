// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/collective.h"

#include <algorithm>

namespace reshard::backends::mpi {
namespace {

Group group_of(const Plan& plan, const CollectiveStep& step, std::size_t g) {
  Group out;
  for (Slot member : step.group(g))
    out.push_back(to_int(plan.ranks[static_cast<std::size_t>(member)]));
  return out;
}

}  // namespace

bool taken_by_mpi(const Plan& plan, const CollectiveStep& step, const WorldOptions& options) {
  bool folds = step.kind == CollectiveKind::ReduceScatter || step.kind == CollectiveKind::AllReduce;
  if (folds && !mpi_may_fold(step, plan.request().dtype())) return false;
  // Also what an implementation may add up within: the larger of the two buffers. All groups of a
  // step are looked at, as all processes keep books about all groups.
  std::int64_t most = 0;
  for (Slot slot : step.members)
    most = std::max(
        {most, plan.buffer(step.input).elements(slot), plan.buffer(step.output).elements(slot)});
  return most * size_bytes(plan.request().dtype()) <= options.collective_bytes;
}

std::vector<std::shared_ptr<Communicator>> make_groups(const Plan& plan, World& world) {
  std::vector<std::shared_ptr<Communicator>> out(plan.steps.size());
  bool waited = false;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const auto* collective = std::get_if<CollectiveStep>(&plan.steps[s].body);
    if (collective == nullptr || !taken_by_mpi(plan, *collective, world.options)) continue;
    for (std::size_t g = 0; g < collective->group_count(); ++g) {
      Group group = group_of(plan, *collective, g);
      if (!waited && !world.groups.has(group)) {
        // Making a communicator blocks without a limit: first see that all are here.
        world.barrier("making communicators");
        waited = true;
      }
      // A rank is in one group of a step at most.
      if (std::shared_ptr<Communicator> mine =
              world.groups.get(world.comm.get(), world.rank, group))
        out[s] = std::move(mine);
    }
  }
  return out;
}

std::unique_ptr<Part> make_collective_part(const PartContext& context) {
  const auto& step = std::get<CollectiveStep>(context.body().body);
  Group group = group_of(context.plan, step, static_cast<std::size_t>(context.step.group));
  if (!taken_by_mpi(context.plan, step, context.world.options))
    return make_pairwise_collective(context, step, group);
  return make_mpi_collective(context, step, std::move(group));
}

}  // namespace reshard::backends::mpi
