// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's redistribution cost model (torch/distributed/tensor/_collective_utils.py), in
// microseconds, IEEE double in PyTorch's operation order. It decides nothing outside planners that
// imitate PyTorch; reports show it beside our own topology-aware time.
#pragma once

#include <string_view>
#include <vector>

#include "core/layout/layout.h"

namespace reshard {

// The release whose answers tests/torch/data holds.
inline constexpr std::string_view kTorchVersion = "2.15";

// Bandwidth and latency that the model gives each mesh axis: walk axes from last to first
// multiplying sizes; an axis at which the product exceeds `devices_per_host` is inter-host.
struct TorchMeshTopology {
  // "GB/s" that GiB are divided by: PyTorch's own 7.4 % slip, kept.
  IndexVector<int, double> bandwidth_gb_per_s;
  IndexVector<int, double> latency_us;  // per hop
  IndexVector<int, std::int32_t> sizes;
};
TorchMeshTopology torch_mesh_topology(const Mesh& mesh, std::int32_t devices_per_host);

double torch_allgather_cost_us(double gib, const TorchMeshTopology& topology, int axis);
double torch_allreduce_cost_us(double gib, const TorchMeshTopology& topology, int axis);
double torch_reduce_scatter_cost_us(double gib, const TorchMeshTopology& topology, int axis);
// The model prices it as a gather of what is held, and a penalty.
double torch_all_to_all_cost_us(double gib, const TorchMeshTopology& topology, int axis);

// One step of a plan of PyTorch: axis, from, to.
struct TorchStep {
  int axis;
  Placement from, to;
  friend bool operator==(const TorchStep&, const TorchStep&) = default;
};

// Cost of one step while a rank holds `gib`, which becomes what it holds afterwards; infinite where
// it is forbidden.
double torch_step_cost_us(const TorchStep& step, const TorchMeshTopology& topology, double& gib);

// Cost of a list of steps that starts at `source`; infinite for forbidden steps. 0 when the source
// is fully replicated or nothing differs.
double torch_steps_cost_us(const Layout& source, const std::vector<TorchStep>& steps,
                           std::int32_t devices_per_host);

}  // namespace reshard
