// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's model of redistributing an operator's input: the cost and the steps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/ops/call.h"
#include "core/torch/cost_model.h"

namespace reshard {

// A change on one axis.
struct OpStep {
  int axis;
  OpPlacement from, to;
};
// "0:S(0)->R".
std::string text(const OpStep& step);

class TorchMoves {
 public:
  TorchMoves(MeshRef mesh, std::int32_t devices_per_host);

  // In microseconds. Infinite for what PyTorch's search may not choose: from one partial to
  // another, from a shard to a partial, and with a _StridedShard that a user made. Tensors that are
  // replicated on all axes are free, and so are steps of a _StridedShard that a view made.
  double cost_us(const TensorSpec& from, const OpPlacements& to) const;
  // In the order of PyTorch's planner.
  std::vector<OpStep> steps(const TensorSpec& from, const OpPlacements& to) const;

  const Mesh& mesh() const { return *mesh_; }
  const MeshRef& mesh_ref() const { return mesh_; }
  std::span<const std::int32_t> sizes() const { return mesh_->shape(); }

 private:
  std::vector<OpStep> strided_steps(const TensorSpec& from, const OpPlacements& to) const;

  MeshRef mesh_;
  std::int32_t devices_per_host_;
  TorchMeshTopology topology_;
};

}  // namespace reshard
