// SPDX-License-Identifier: BSD-3-Clause
#include "backends/nccl/executor.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>

#include "backends/launch/agreement.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/traffic/transfers.h"

namespace reshard::backends::nccl {
namespace {

// Of a stream, all ranks together: kMaxStreams times as many fit on a GPU of 64 multiprocessors.
constexpr std::int32_t kBlocksPerGpu = 16;

std::vector<LocalRank> locals_of(const Job& job) {
  RESHARD_CHECK(job.ranks.size() == job.devices.size(), "a device per rank");
  std::vector<LocalRank> out;
  for (std::size_t i = 0; i < job.ranks.size(); ++i)
    out.push_back({job.ranks[i], job.devices[i].get()});
  return out;
}

}  // namespace

NcclExecutor::NcclExecutor(Job job)
    : job_(std::move(job)),
      options_{job_.declared_order, job_.api->version() >= kNcclAllToAll, job_.over_parent} {
  communicators_ =
      std::make_unique<Communicators>(*job_.api, *job_.meeting, job_.world, locals_of(job_),
                                      job_.policies, job_.limit, job_.warn, job_.caller);
}

NcclExecutor::~NcclExecutor() = default;

std::unique_ptr<Prepared> NcclExecutor::make_ready(const Plan& plan,
                                                   std::span<const CallerShards> shards) {
  communicators_->ensure_usable();
  RESHARD_CHECK(shards.empty() || job_.ranks.size() == 1, "shards of one rank");
  std::unique_ptr<Prepared> prepared;
  std::string trouble = trouble_with_ranks(plan);
  if (trouble.empty() && !shards.empty()) trouble = trouble_with(plan, Rank{job_.ranks[0]}, shards);
  if (trouble.empty())
    prepared = std::make_unique<Prepared>(plan, *communicators_, *job_.meeting, options_, shards);
  for (std::size_t i = 0; i < job_.ranks.size() && trouble.empty(); ++i) {
    std::int64_t needed = prepared->needed_bytes(i) * job_.ranks_per_device,
                 free = job_.devices[i]->free_bytes();
    if (needed > free)
      trouble = fmt::format("plan: rank {} needs {} of its GPU's memory, but {} is free",
                            job_.ranks[i], bytes_text(needed), bytes_text(free));
  }
  communicators_->together([&] {
    launch::agree_on_plan(*job_.meeting, &plan, trouble);
    if (!job_.over_parent) make_communicators(plan);
  });
  prepared->make_ready();
  return prepared;
}

std::int64_t NcclExecutor::needed_bytes(const Plan& plan, std::span<const CallerShards> shards) {
  std::string trouble = trouble_with_ranks(plan);
  if (trouble.empty()) trouble = trouble_with(plan, Rank{job_.ranks[0]}, shards);
  if (!trouble.empty()) throw InputError(trouble);
  return Prepared(plan, *communicators_, *job_.meeting, options_, shards).needed_bytes(0);
}

std::string NcclExecutor::trouble_with_ranks(const Plan& plan) const {
  if (plan.ranks.empty() || to_int(plan.ranks.back()) < job_.world) return "";
  return fmt::format("plan: it names rank {}, but the job has {} rank{}", to_int(plan.ranks.back()),
                     job_.world, job_.world == 1 ? "" : "s");
}

void NcclExecutor::refuse(const std::string& why) {
  communicators_->ensure_usable();
  communicators_->together([&] {
    launch::agree_on_plan(*job_.meeting, nullptr, fmt::format("rank {}: {}", job_.ranks[0], why));
  });
  throw InputError(why);  // only reached by a single process: otherwise agree_on_plan has thrown
}

// In the order of the plan's steps, which is the same on all ranks. Ranks without a part in the
// plan still take part in the splits.
void NcclExecutor::make_communicators(const Plan& plan) {
  std::set<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    std::int32_t stream = plan.steps[s].stream;
    std::vector<std::vector<std::int32_t>> groups;
    for (const std::vector<Rank>& group : groups_of(plan, StepId{static_cast<std::int32_t>(s)}))
      for (std::vector<std::int32_t>& members = groups.emplace_back(); Rank rank : group)
        members.push_back(to_int(rank));
    if (!groups.empty())
      communicators_->groups(groups, stream);
    else if (stream != 0 && communicates(plan.steps[s]))
      communicators_->all(stream);
    else
      for_each_pair(plan, plan.steps[s], [&](Slot from, Slot to, std::int64_t) {
        pairs.insert(std::minmax(to_int(plan.rank_of(from)), to_int(plan.rank_of(to))));
      });
  }
  communicators_->connect({pairs.begin(), pairs.end()});
}

bool NcclExecutor::folds_in_own_order(const Plan& plan) const {
  bool own = false;
  SchedulePolicy policy = schedule_policy(options_);
  for_each_collective(plan, [&](StepId, const CollectiveFacts& facts) {
    // With two operands there is only one order.
    own = own || (facts.folds() && is_floating(facts.dtype) && facts.group_size > 2 &&
                  policy.native(facts));
  });
  return own;
}

void allow_sharing(const launch::Placement& placement, int nccl_version,
                   const launch::Environment& environment,
                   const std::function<void(const char*, const char*)>& set,
                   const std::function<void(const std::string&)>& warn) {
  if (placement.most_on_one <= 1) return;
  std::string what = fmt::format("{} ranks on {} GPU{}", placement.ranks, placement.gpus,
                                 placement.gpus == 1 ? "" : "s");
  if (nccl_version < kNcclSharedGpu)
    throw InputError(fmt::format("NCCL: {} need NCCL {} or newer, found {}", what,
                                 version_text(kNcclSharedGpu), version_text(nccl_version)));
  // All ranks' kernels must be resident on the GPU at the same time, or they wait for each other
  // for ever: so each gets few thread blocks, and every stream its own hardware queue.
  std::string blocks = std::to_string(std::max(1, kBlocksPerGpu / placement.most_on_one));
  std::array<std::array<const char*, 2>, 4> variables{{{"NCCL_MULTI_RANK_GPU_ENABLE", "1"},
                                                       {"NCCL_NVLS_ENABLE", "0"},
                                                       {"NCCL_MAX_CTAS", blocks.c_str()},
                                                       {"CUDA_DEVICE_MAX_CONNECTIONS", "32"}}};
  for (auto [name, value] : variables)
    if (!environment(name)) set(name, value);
  if (warn)
    warn(fmt::format(
        "NCCL: {}: results are those of that many GPUs, but times are not those of links", what));
}

}  // namespace reshard::backends::nccl
