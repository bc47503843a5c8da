// SPDX-License-Identifier: BSD-3-Clause
// Softmax and normalisations: the normalised dims are not sharded, all others can be; gradients of
// weights are partial sums.
#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/ops/attributes.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"
#include "core/ops/torch_fault.h"

namespace reshard {
namespace {

Rows softmax(const OpSite& site) {
  Rows rows;
  shard_equally(site, {site.dim("dim", -1)}, static_cast<int>(site.inputs().size()) + 1, rows);
  return rows;
}

Metas softmax_metas(const OpSite& site) {
  (void)site.attributes.integer("dim");
  TensorMeta out = site.meta(0);
  if (site.attributes.boolean("half_to_float", false)) out.dtype = DType::F32;
  out.dtype = dtype_or(site.attributes, out.dtype);
  out.dtype = dtype_or(site.attributes, out.dtype, "input_dtype");
  return {out};
}

// The number of dims of argument `input` before those that are normalised.
int leading_dims(const OpSite& site, int input) {
  const Shape& shape = site.shape(input);
  return shape.size() - normalized_dims(site.attributes, shape);
}

// One row per leading dim: the outputs, then the inputs that it cuts, then replicated weights.
Rows norm_rows(const OpSite& site, int lead, const Row& weights_back, std::size_t cut_inputs) {
  Rows rows;
  std::size_t inputs = site.inputs().size();
  for (int d = 0; d < lead; ++d) {
    Row row = weights_back;
    for (Mark& mark : row)
      if (mark.kind == Mark::Kind::Shard) mark.dim = static_cast<std::int8_t>(d);
    row.insert(row.end(), cut_inputs, Mark::shard(d));
    row.insert(row.end(), inputs - cut_inputs, Mark::replicate());
    rows.push_back(std::move(row));
  }
  return rows;
}

Rows norm_forward(const OpSite& site) {
  return norm_rows(site, leading_dims(site, 0), Row(site.outputs.size(), Mark::shard(0)), 1);
}

// The statistics have the leading dims, and 1 for each normalised dim.
Metas norm_forward_metas(const OpSite& site) {
  TensorMeta input = site.meta(0), statistics = input;
  for (int d = leading_dims(site, 0); d < input.shape.size(); ++d) statistics.shape[d] = 1;
  if (statistics.dtype == DType::BF16 || statistics.dtype == DType::F16)
    statistics.dtype = site.op.name.starts_with("_fused_rms") ? DType::F32 : statistics.dtype;
  Metas out{input, statistics};
  if (site.op.name.starts_with("native_layer_norm")) out.push_back(statistics);
  return out;
}

bool wanted(const OpSite& site, std::size_t output) {
  std::vector<bool> mask = site.attributes.booleans("output_mask", {true, true, true});
  return output < mask.size() && mask[output];
}

// Inputs: grad_out, input, statistics, then weights. Outputs: the gradients of input and weights.
Rows norm_backward(const OpSite& site) {
  Row back;
  for (std::size_t i = 0; i < site.outputs.size(); ++i)
    back.push_back(!site.outputs[i] ? Mark::absent()
                   : i == 0         ? Mark::shard(0)
                                    : Mark::partial(ReduceOp::Sum));
  return norm_rows(site, leading_dims(site, 1), back,
                   site.op.name.starts_with("_fused_rms") ? 3 : 4);
}

Metas norm_backward_metas(const OpSite& site) {
  (void)leading_dims(site, 1);
  int first_weight = site.op.name.starts_with("_fused_rms") ? 3 : 4;
  Metas out{wanted(site, 0) ? std::optional(site.meta(1)) : std::nullopt};
  for (int i = 0; first_weight + i < static_cast<int>(site.op.tensors.size()); ++i) {
    bool made = site.has(first_weight + i) && wanted(site, to_index(i + 1));
    out.push_back(made ? std::optional(site.meta(first_weight + i)) : std::nullopt);
  }
  return out;
}

// When statistics are moved to an uneven cut of a dim other than the first, PyTorch's shard of them
// is a view into a padded tensor.
std::string_view norm_backward_fault(const TorchChoice& choice) {
  if (!choice.site.op.name.starts_with("native_layer_norm")) return {};
  for (std::size_t i : {std::size_t{2}, std::size_t{3}})
    for (std::size_t axis = 0; axis < choice.sizes.size(); ++axis) {
      const TensorSpec& from = *choice.inputs[i];
      const OpPlacement& to = choice.right.wanted[i]->at(axis);
      if (to == from.placements[axis] || !from.placements[axis].is_shard_like()) continue;
      if (to.is_shard_like() && to.dim > 0 && from.meta.shape[to.dim] % choice.sizes[axis] != 0)
        return "PyTorch 2.15 is silently wrong here on CPUs: the uneven shard of mean or rstd that "
               "it moved has gaps, which the kernel reads as elements";
    }
  return {};
}

// PyTorch's decomposition on CPUs adds eps to a mean of squares in place.
std::string_view norm_forward_fault(const TorchChoice& choice) {
  if (!choice.site.op.name.starts_with("_fused_rms")) return {};
  const TensorSpec& input = *choice.inputs[0];
  for (const OpPlacement& placement : input.placements)
    if (placement.is_shard_like() && placement.dim >= leading_dims(choice.site, 0))
      return "PyTorch 2.15 fails here on CPUs: it decomposes rms_norm and refuses to add eps in "
             "place to a Partial mean";
  return {};
}

// The input has a batch dim, a channel dim and others; only the batch is cut.
Rows group_norm(const OpSite& site) {
  Row row(site.outputs.size() + 1, Mark::shard(0));
  row.insert(row.end(), site.inputs().size() - 1, Mark::replicate());
  return {row};
}

Metas group_norm_metas(const OpSite& site) {
  const TensorMeta& input = site.meta(0);
  std::int64_t groups = site.attributes.integer("group");
  if (input.shape.size() < 2 || groups < 1 || input.shape[1] % groups != 0)
    throw InputError(fmt::format("attr group: expected a divisor of the channels of [{}], found {}",
                                 text(input.shape), groups));
  TensorMeta statistics{Shape{input.shape[0], groups}, input.dtype};
  return {input, statistics, statistics};
}

// Inputs: gradient, input, mean, rstd, weight. Gradients of per-channel tensors are sums over the
// batch.
Rows group_norm_backward(const OpSite& site) {
  Row row;
  for (std::size_t i = 0; i < site.outputs.size(); ++i)
    row.push_back(!site.outputs[i] ? Mark::absent()
                  : i == 0         ? Mark::shard(0)
                                   : Mark::partial(ReduceOp::Sum));
  row.insert(row.end(), 4, Mark::shard(0));
  if (site.has(4)) row.push_back(Mark::replicate());
  return {row};
}

Metas group_norm_backward_metas(const OpSite& site) {
  const TensorMeta& input = site.meta(1);
  if (input.shape.size() < 2) throw InputError(site.op.name + ": expected a batch of channels");
  TensorMeta of_channels{Shape{input.shape[1]}, input.dtype};
  std::vector<bool> mask = site.attributes.booleans("output_mask", {true, true, true});
  Metas out{input, of_channels, of_channels};
  for (std::size_t i = 0; i < out.size() && i < mask.size(); ++i)
    if (!mask[i]) out[i].reset();
  return out;
}

constexpr Rule kNormRules[]{
    {"softmax", softmax, softmax_metas, "dim half_to_float dtype input_dtype", true},
    {"norm_forward", norm_forward, norm_forward_metas, "normalized_shape", true, nullptr, nullptr,
     nullptr, norm_forward_fault},
    {"norm_backward", norm_backward, norm_backward_metas, "normalized_shape output_mask", false,
     nullptr, nullptr, nullptr, norm_backward_fault},
    {"group_norm", group_norm, group_norm_metas, "group", false},
    {"group_norm_backward", group_norm_backward, group_norm_backward_metas, "output_mask", false},
};

}  // namespace

std::span<const Rule> norm_rules() { return kNormRules; }

}  // namespace reshard
