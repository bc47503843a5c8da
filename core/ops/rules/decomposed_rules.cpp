// SPDX-License-Identifier: BSD-3-Clause
// Operators that are followed through the steps of their decomposition.
#include <algorithm>

#include "core/ops/attributes.h"
#include "core/ops/decompositions/steps.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"

namespace reshard {
namespace {

// The marks that PyTorch tries for one tensor: every cut, the partials among the call's inputs, and
// replicas, in the order that Python's sets have them in, which decides between equal costs.
std::vector<Mark> tried(const TensorMeta& tensor, const std::vector<ReduceOp>& partials) {
  std::vector<Mark> out;
  for (int d = 0; d < tensor.shape.size(); ++d) out.push_back(Mark::shard(d));
  for (ReduceOp op : partials) out.push_back(Mark::partial(op));
  out.push_back(Mark::replicate());
  return out;
}

std::vector<ReduceOp> partials_among(const std::vector<const TensorSpec*>& inputs) {
  std::vector<ReduceOp> out;
  for (ReduceOp op :
       {ReduceOp::Max, ReduceOp::Min, ReduceOp::Sum, ReduceOp::Avg, ReduceOp::Product}) {
    bool is_one = std::any_of(inputs.begin(), inputs.end(), [&](const TensorSpec* input) {
      return std::any_of(input->placements.begin(), input->placements.end(),
                         [&](const OpPlacement& placement) { return placement.is_partial(op); });
    });
    if (is_one) out.push_back(op);
  }
  return out;
}

OpPlacements on_one_axis(const Mark& mark) {
  switch (mark.kind) {
    case Mark::Kind::Shard:
      return {OpPlacement::shard(mark.dim)};
    case Mark::Kind::Partial:
      return {OpPlacement::partial(mark.op)};
    default:
      return {OpPlacement::replicate()};
  }
}

std::optional<Mark> mark_of(const OpPlacement& placement) {
  switch (placement.kind) {
    case OpPlacement::Kind::Replicate:
      return Mark::replicate();
    case OpPlacement::Kind::Shard:
      return Mark::shard(placement.dim);
    case OpPlacement::Kind::Partial:
      return Mark::partial(placement.op);
    case OpPlacement::Kind::NormPartial:
      return Mark::of_norm(placement.norm, placement.norm_is_number);
    default:
      return std::nullopt;
  }
}

// Advances to the next choice of one mark per tensor, the last tensor varying fastest; false after
// the last choice.
bool next(std::vector<std::size_t>& chosen, const std::vector<std::vector<Mark>>& marks) {
  for (std::size_t i = chosen.size(); i-- > 0;) {
    if (++chosen[i] < marks[i].size()) return true;
    chosen[i] = 0;
  }
  return false;
}

Rows decomposed(const OpSite& site) {
  constexpr std::int32_t kOneRank[]{1};
  Steps steps(site);
  std::vector<ReduceOp> partials = partials_among(site.placed);
  std::vector<std::vector<Mark>> marks;
  for (StepTensor input : steps.inputs()) marks.push_back(tried(steps.meta(input), partials));
  Rows rows;
  std::vector<std::size_t> chosen(marks.size(), 0);
  do {
    Row row(steps.outputs().size());
    std::vector<OpPlacements> placed;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      row.push_back(marks[i][chosen[i]]);
      placed.push_back(on_one_axis(row.back()));
    }
    std::vector<const OpPlacements*> inputs;
    for (const OpPlacements& each : placed) inputs.push_back(&each);
    auto outputs = steps.propagated(inputs, kOneRank);
    bool is_row = outputs.has_value();
    for (std::size_t i = 0; is_row && i < outputs->size(); ++i) {
      std::optional<Mark> mark = mark_of((*outputs)[i][0]);
      is_row = mark.has_value();
      if (mark) row[i] = *mark;
    }
    if (is_row) rows.push_back(std::move(row));
  } while (next(chosen, marks));
  return rows;
}

Metas decomposed_metas(const OpSite& site) {
  Steps steps(site);
  Metas out;
  for (StepTensor output : steps.outputs()) out.emplace_back(steps.meta(output));
  return out;
}

// PyTorch follows the steps on a mesh of one rank, where all shards are even: there, even a mean of
// means over uneven shards looks right.
bool holds_on_the_mesh(const Placing& placing) {
  return Steps(placing.site).propagated(placing.to, placing.sizes).has_value();
}

constexpr Rule kDecomposedRules[]{
    {"steps", decomposed, decomposed_metas, "", false, holds_on_the_mesh},
};

// Whether the placements on each axis alone look right on one rank.
bool passes_axis_by_axis(const Steps& steps, const std::vector<const TensorSpec*>& inputs,
                         std::size_t axes) {
  constexpr std::int32_t kOneRank[]{1};
  for (std::size_t axis = 0; axis < axes; ++axis) {
    std::vector<OpPlacements> own;
    std::vector<const OpPlacements*> pointers;
    for (const TensorSpec* input : inputs) own.push_back({input->placements[axis]});
    for (const OpPlacements& each : own) pointers.push_back(&each);
    if (!steps.propagated(pointers, kOneRank)) return false;
  }
  return true;
}

// Gradients of a mean, which divide by the number of elements.
bool divides_by_count(const OpSite& site) {
  std::string_view name = site.op.name;
  return name.find("_loss_backward") != std::string_view::npos ||
         name == "binary_cross_entropy_backward";
}

}  // namespace

std::string_view fault_of_steps(const OpSite& site, std::span<const std::int32_t> sizes,
                                const std::vector<std::optional<OpPlacements>>& wanted) {
  if (divides_by_count(site) && loss_reduction(site.attributes) == Reduction::Mean)
    for (const OpPlacement& placement : *wanted[1])
      if (placement.is_shard_like())
        return "PyTorch divides by the number of elements on the rank, so the gradient of a mean "
               "is too large";
  bool moved = false;
  for (std::size_t i = 0; i < site.placed.size(); ++i)
    moved = moved || *wanted[i] != site.placed[i]->placements;
  if (moved && passes_axis_by_axis(Steps(site), site.placed, sizes.size()))
    return "PyTorch treats the shards as if all of them had the same size";
  return {};
}

std::span<const Rule> decomposed_rules() { return kDecomposedRules; }

}  // namespace reshard
