// SPDX-License-Identifier: BSD-3-Clause
// Builds an executor from what is on this machine and in this process's environment.
#include <cstdlib>
#include <exception>

#include <fmt/core.h>

#include "backends/device/cuda_device.h"
#include "backends/nccl/backend.h"
#include "backends/nccl/executor.h"
#include "backends/nccl/nccl_library.h"
#include "core/base/errors.h"

namespace reshard::backends::nccl {

BackendStatus probe() {
  std::string nccl;
  try {
    nccl = "NCCL " + version_text(open_nccl()->version());
  } catch (const std::exception& error) {
    return {false, error.what(),
            "install NVIDIA's libnccl2, or set RESHARD_NCCL_LIBRARY to its libnccl.so.2"};
  }
  CudaMachine machine = look_for_gpus();
  if (machine.gpus.empty())
    return {false, fmt::format("{}, but {}", nccl, machine.why_none),
            "a GPU of compute capability 8.0 or newer and NVIDIA's driver for it"};
  return {true,
          fmt::format("{}, {} GPU{}: {} ({})", nccl, machine.gpus.size(),
                      machine.gpus.size() == 1 ? "" : "s", machine.gpus[0], machine.versions),
          ""};
}

std::unique_ptr<Executor> make(const BackendOptions& options) {
  launch::Environment environment = launch::process_environment();
  launch::LaunchedProcess launch = launch::find_launch(options, environment);
  bool alone = launch.launcher.empty();
  Job job;
  job.limit = std::chrono::seconds(options.time_limit_s);
  job.declared_order = options.declared_order;
  job.policies = policies_of(options.communicators);
  job.warn = options.warn;
  // The meeting comes first, so that a process that finds something missing can inform the others.
  if (!alone)
    job.meeting =
        launch::meet(launch, launch::find_meeting_place(options, launch, environment), job.limit);
  job.api = open_nccl();
  CudaMachine machine = look_for_gpus();
  if (machine.gpus.empty())
    throw BackendError("CUDA", "looking for a GPU", machine.why_none, launch.rank);

  std::vector<launch::ProcessFacts> facts = launch::share_facts(
      *job.meeting,
      {launch::this_node(), launch.local_rank.value_or(-1), options.device, machine.ids});
  std::int32_t asked = options.world_size > 0 ? options.world_size
                       : options.device >= 0  ? 1
                                              : static_cast<std::int32_t>(machine.gpus.size());
  launch::Placement placement = launch::place(facts, asked);
  allow_sharing(
      placement, job.api->version(), environment,
      [](const char* name, const char* value) { ::setenv(name, value, 1); },
      launch.rank == 0 ? options.warn : nullptr);
  job.world = placement.ranks;
  job.ranks_per_device = placement.most_on_one;
  for (int device : placement.devices[to_index(launch.rank)]) {
    job.ranks.push_back(launch.rank + static_cast<std::int32_t>(job.ranks.size()));
    job.devices.push_back(make_cuda_device(device));
  }
  return std::make_unique<NcclExecutor>(std::move(job));
}

}  // namespace reshard::backends::nccl
