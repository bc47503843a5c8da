// SPDX-License-Identifier: BSD-3-Clause
// Operators that PyTorch runs by a handler: argmax and argmin, and the losses of loss_parallel.
#include "core/ops/attributes.h"
#include "core/ops/rules/rules.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/ops/metas.h"
#include "core/ops/torch_fault.h"

namespace reshard {
namespace {

bool is_arg_extreme(const OpCall& call) {
  return call.op->name == "argmax" || call.op->name == "argmin";
}

bool is_loss(const OpCall& call) {
  for (std::string_view name : {"_log_softmax", "_log_softmax_backward_data", "nll_loss_forward",
                                "nll_loss_backward", "nll_loss2d_forward", "nll_loss2d_backward"})
    if (call.op->name == name) return true;
  return false;
}

OpSite site_of(const OpCall& call) {
  OpSite out{*call.op, {}, call.attributes};
  for (const OpArgument& argument : call.arguments) {
    OpSite::Argument& metas = out.arguments.emplace_back();
    for (const TensorSpec* tensor : argument.tensors)
      metas.tensors.push_back(tensor ? &tensor->meta : nullptr);
  }
  out.arguments.resize(std::max(out.arguments.size(), call.op->tensors.size()));
  out.outputs = call.op->rule->metas(out);
  return out;
}

const TensorSpec* input_of(const OpCall& call, std::size_t at) {
  bool there = at < call.arguments.size() && !call.arguments[at].tensors.empty();
  return there ? call.arguments[at].tensors[0] : nullptr;
}

// ---- argmax, argmin

// Partials are reduced. Dims that remain keep their cuts. For each axis that cuts a reduced dim,
// all ranks' best values and indices are gathered.
Decision arg_extreme(const OpCall& call, std::span<const std::int32_t> sizes,
                     const MoveCost& cost) {
  OpSite site = site_of(call);
  const TensorSpec& input = *input_of(call, 0);
  std::vector<int> reduced = all_dims(input.meta.shape.size());
  if (call.attributes.has("dim")) reduced = {site.dim("dim", 0)};
  bool keep = call.attributes.boolean("keepdim", false);
  Decision out;
  OpPlacements wanted = input.placements, output;
  for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
    OpPlacement& placement = wanted[axis];
    // The handler does not know which elements a _StridedShard holds.
    if (placement.is_partial() || placement.kind == OpPlacement::Kind::StridedShard)
      placement = OpPlacement::replicate();
    output.push_back(placement);
    if (!placement.is_shard_like()) continue;
    if (!contains(reduced, placement.dim)) {
      output.back().dim = static_cast<std::int8_t>(reduced_dim(placement.dim, reduced, keep));
      continue;
    }
    output.back() = OpPlacement::replicate();
    if (sizes[axis] == 1) continue;
    for (DType dtype : {input.meta.dtype, DType::I64})
      out.collectives.push_back(
          {"all_gather", static_cast<int>(axis), site.outputs[0]->shape, dtype});
  }
  for (int dim : reduced)
    if (has_empty_shard(input.meta, wanted, dim, sizes))
      out.corrected =
          "PyTorch 2.15 hangs here: a rank with an empty shard of the reduced dim raises, and the "
          "others wait for it";
  if (has_strided(input.placements))
    out.corrected =
        "PyTorch 2.15 is silently wrong here: its handler treats a _StridedShard as a Shard and "
        "returns indices of other elements";
  out.wanted = {wanted};
  out.cost_us = cost(input, wanted);
  out.outputs = {TensorSpec{*site.outputs[0], output}};
  return out;
}

// ---- losses of logits that are cut along the classes

// The axis that cuts the classes; other axes can cut batches.
std::size_t class_axis(const OpCall& call, const TensorSpec& logits, int classes) {
  std::size_t found = logits.placements.size(), count = 0;
  for (std::size_t axis = 0; axis < logits.placements.size(); ++axis) {
    const OpPlacement& placement = logits.placements[axis];
    if (placement.is_shard_like() && placement.dim == classes) {
      found = axis;
      ++count;
    } else if (!placement.is_replicate() && placement.kind != OpPlacement::Kind::Shard) {
      throw InputError(fmt::format("{}: loss_parallel expects other axes to be S or R, found {}",
                                   call.op->name, text(logits.placements)));
    }
  }
  if (count != 1)
    throw InputError(
        fmt::format("{}: loss_parallel requires exactly one axis to shard dim {}, found {}",
                    call.op->name, classes, text(logits.placements)));
  return found;
}

// The logits' placements without the classes.
OpPlacements target_placements(const OpPlacements& logits, std::size_t axis, int classes) {
  OpPlacements out = logits;
  out[axis] = OpPlacement::replicate();
  for (OpPlacement& placement : out)
    if (placement.is_shard_like() && placement.dim > classes) --placement.dim;
  return out;
}

// PyTorch's handler of the derivative uses the loss handler's output in whatever placements it has;
// from addends no rank can compute a derivative.
void expect_whole_or_cut(const OpCall& call, const TensorSpec& logits) {
  for (const OpPlacement& placement : logits.placements)
    if (placement.is_partial())
      throw InputError(fmt::format("{}: loss_parallel expects logits that are S or R, found {}",
                                   call.op->name, text(logits.placements)));
}

Decision log_softmax(const OpCall& call, const OpSite& site) {
  bool backward = call.arguments.size() > 1;
  const TensorSpec& logits = *input_of(call, backward ? 1 : 0);
  int classes = site.dim("dim", -1);
  if (backward) expect_whole_or_cut(call, logits);
  std::size_t axis = backward ? 0 : class_axis(call, logits, classes);
  Decision out;
  out.wanted.assign(call.arguments.size(), logits.placements);
  out.outputs = {TensorSpec{*site.outputs[0], logits.placements}};
  Shape rows = reduced_shape(logits.meta.shape, {classes}, false);
  // For the largest logit and the sum of exponentials.
  for (int i = 0; i < 2 && !backward; ++i)
    out.collectives.push_back({"all_reduce", static_cast<int>(axis), rows, logits.meta.dtype});
  return out;
}

Decision nll_loss(const OpCall& call, const OpSite& site) {
  bool backward = call.op->name.find("backward") != std::string::npos;
  const TensorSpec& logits = *input_of(call, backward ? 1 : 0);
  int classes = logits.meta.shape.size() >= 2 ? 1 : 0;
  std::size_t axis = class_axis(call, logits, classes);
  OpPlacements targets = target_placements(logits.placements, axis, classes),
               whole(targets.size(), OpPlacement::replicate());
  const Reduction reduction = loss_reduction(call.attributes);
  if (!backward && reduction == Reduction::Mean && targets.size() > 1)
    throw InputError(
        fmt::format("{}: loss_parallel takes the mean only on a mesh of one axis; sum, "
                    "and divide",
                    call.op->name));
  OpPlacements loss = targets;
  for (OpPlacement& placement : loss)
    if (reduction == Reduction::Sum && placement.is_shard_like())
      placement = OpPlacement::partial(ReduceOp::Sum);
  Decision out;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    if (!input_of(call, i)) {
      out.wanted.emplace_back(std::nullopt);
    } else if (input_of(call, i) == &logits) {
      out.wanted.emplace_back(logits.placements);
    } else if (site.op.tensors[i].name == "target" || (i == 0 && reduction == Reduction::None)) {
      out.wanted.emplace_back(targets);
      if (input_of(call, i)->placements != targets)
        out.corrected =
            "PyTorch 2.15 fails here: within loss_parallel the caller must shard targets like the "
            "batches of the logits";
    } else {
      out.wanted.emplace_back(whole);
    }
  }
  out.outputs = {TensorSpec{*site.outputs[0], backward ? logits.placements : loss}};
  if (!backward) {
    out.outputs.emplace_back(TensorSpec{*site.outputs[1], whole});
    out.collectives.push_back({"all_reduce", static_cast<int>(axis),
                               reduced_shape(logits.meta.shape, {classes}, false),
                               logits.meta.dtype});
  }
  return out;
}

}  // namespace

bool is_handled(const OpCall& call) {
  return is_arg_extreme(call) || (call.loss_parallel && is_loss(call));
}

Decision decide_handled(const OpCall& call, std::span<const std::int32_t> sizes,
                        const MoveCost& cost) {
  Decision out;
  if (is_arg_extreme(call)) {
    out = arg_extreme(call, sizes, cost);
  } else {
    OpSite site = site_of(call);
    out = call.op->name.starts_with("_log") ? log_softmax(call, site) : nll_loss(call, site);
    for (std::size_t i = 0; i < out.wanted.size(); ++i)
      if (out.wanted[i]) out.cost_us += cost(*input_of(call, i), *out.wanted[i]);
  }
  out.handled = true;
  return out;
}

}  // namespace reshard
