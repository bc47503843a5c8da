// SPDX-License-Identifier: BSD-3-Clause
// Sums of steps, each latency + volume / bandwidth. Every operation is in PyTorch's order: results
// are compared to the last digit.
#include "core/torch/cost_model.h"

namespace reshard {
namespace {

constexpr double kBaseLatencyUs = 6.6;
constexpr double kHopLatencyUs = 0.6, kInterHostHopLatencyUs = 2.7;
constexpr double kBandwidthGbPerS = 87.7, kInterHostFactor = 0.22;
constexpr double kAllToAllPenaltyUs = 1.0;  // "favor allgather"

double ring_cost_us(double gib, double hops, const TorchMeshTopology& topology, int axis) {
  double latency = kBaseLatencyUs + hops * topology.latency_us[axis];
  double bandwidth =
      (gib * hops / static_cast<double>(topology.sizes[axis])) / topology.bandwidth_gb_per_s[axis];
  return latency + bandwidth * 1e6;
}

double hops_around(const TorchMeshTopology& topology, int axis) {
  return static_cast<double>(topology.sizes[axis] - 1);
}

}  // namespace

TorchMeshTopology torch_mesh_topology(const Mesh& mesh, std::int32_t devices_per_host) {
  auto axes = to_index(mesh.axes());
  TorchMeshTopology out{std::vector<double>(axes, kBandwidthGbPerS),
                        std::vector<double>(axes, kHopLatencyUs), mesh.shape()};
  std::int64_t devices = 1;
  for (std::size_t axis = axes; axis-- > 0;) {
    devices *= mesh.shape()[axis];
    if (devices <= devices_per_host) continue;
    out.bandwidth_gb_per_s[axis] *= kInterHostFactor;
    out.latency_us[axis] = kInterHostHopLatencyUs;
  }
  return out;
}

double torch_allgather_cost_us(double gib, const TorchMeshTopology& topology, int axis) {
  return ring_cost_us(gib, hops_around(topology, axis), topology, axis);
}

double torch_allreduce_cost_us(double gib, const TorchMeshTopology& topology, int axis) {
  return ring_cost_us(gib, 2.0 * hops_around(topology, axis), topology, axis);
}

double torch_reduce_scatter_cost_us(double gib, const TorchMeshTopology& topology, int axis) {
  return ring_cost_us(gib, hops_around(topology, axis), topology, axis);
}

double torch_all_to_all_cost_us(double gib, const TorchMeshTopology& topology, int axis) {
  return torch_allgather_cost_us(gib, topology, axis) + kAllToAllPenaltyUs;
}

double torch_step_cost_us(const TorchStep& step, const TorchMeshTopology& topology, double& gib) {
  auto size = static_cast<double>(topology.sizes[step.axis]);
  if (step.from == step.to) return 0.0;
  if (step.from.is_shard_like()) {
    if (step.to.is_partial()) return kInfiniteCost;
    if (step.to.is_shard_like()) return torch_all_to_all_cost_us(gib, topology, step.axis);
    gib *= size;
    return torch_allgather_cost_us(gib, topology, step.axis);
  }
  if (step.from.is_partial()) {
    if (step.to.is_partial()) return kInfiniteCost;
    if (step.to.is_replicate()) return torch_allreduce_cost_us(gib, topology, step.axis);
    double cost = torch_reduce_scatter_cost_us(gib, topology, step.axis);
    gib /= size;
    return cost;
  }
  if (step.to.is_shard_like()) gib /= size;
  return 0.0;
}

double torch_steps_cost_us(const Layout& source, const std::vector<TorchStep>& steps,
                           std::int32_t devices_per_host) {
  TorchMeshTopology topology = torch_mesh_topology(source.mesh(), devices_per_host);
  double shards = 1.0;
  bool replicated = true;
  for (int axis = 0; axis < source.mesh().axes(); ++axis) {
    replicated = replicated && source.placement(axis).is_replicate();
    if (source.placement(axis).is_shard_like())
      shards *= static_cast<double>(source.mesh().axis_size(axis));
  }
  if (replicated) return 0.0;
  double gib = static_cast<double>(source.bytes()) / shards / 1024.0 / 1024.0 / 1024.0;
  double cost = 0.0;
  for (const TorchStep& step : steps) cost += torch_step_cost_us(step, topology, gib);
  return cost;
}

}  // namespace reshard
