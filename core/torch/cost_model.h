// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's redistribution cost model (torch/distributed/tensor/_collective_utils.py), in
// microseconds, in IEEE doubles and PyTorch's order of operations. Only planners that imitate
// PyTorch decide by it; reports show it next to the topology-aware time.
#pragma once

#include <limits>
#include <string_view>
#include <vector>

#include "core/layout/layout.h"

namespace reshard {

// The release that the expected results in tests/torch/data come from.
inline constexpr std::string_view kTorchVersion = "2.15";

// The cost of what PyTorch forbids.
inline constexpr double kInfiniteCost = std::numeric_limits<double>::infinity();

// The bandwidth and latency that the model gives each mesh axis. It walks the axes from last to
// first, multiplying their sizes; an axis is inter-host if the product there exceeds
// `devices_per_host`.
struct TorchMeshTopology {
  // In GB/s, although volumes in GiB are divided by it: PyTorch's own 7.4 % error, kept.
  IndexVector<int, double> bandwidth_gb_per_s;
  IndexVector<int, double> latency_us;  // per hop
  IndexVector<int, std::int32_t> sizes;
};
TorchMeshTopology torch_mesh_topology(const Mesh& mesh, std::int32_t devices_per_host);

double torch_allgather_cost_us(double gib, const TorchMeshTopology& topology, int axis);
double torch_allreduce_cost_us(double gib, const TorchMeshTopology& topology, int axis);
double torch_reduce_scatter_cost_us(double gib, const TorchMeshTopology& topology, int axis);
// The model prices it as an all-gather of what a rank holds, plus a penalty.
double torch_all_to_all_cost_us(double gib, const TorchMeshTopology& topology, int axis);

// One step of PyTorch's plan.
struct TorchStep {
  int axis;
  Placement from, to;
  friend bool operator==(const TorchStep&, const TorchStep&) = default;
};

// Cost of one step for a rank that holds `gib`, which is updated to what it holds afterwards.
// Infinite for a forbidden step.
double torch_step_cost_us(const TorchStep& step, const TorchMeshTopology& topology, double& gib);

// Cost of a list of steps from `source`. Infinite if a step is forbidden; 0 if the source is fully
// replicated or nothing changes.
double torch_steps_cost_us(const Layout& source, const std::vector<TorchStep>& steps,
                           std::int32_t devices_per_host);

}  // namespace reshard
