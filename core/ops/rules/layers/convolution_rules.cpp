// SPDX-License-Identifier: BSD-3-Clause
// Convolutions: batches can be cut, and the last dim if windows neither overlap nor extend beyond
// it. PyTorch's handler treats any other layout as if it were one of these, and is wrong; here
// inputs move.
#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/ops/attributes.h"
#include "core/ops/candidates.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"
#include "core/ops/torch_fault.h"

namespace reshard {
namespace {

bool is_backward(const OpSite& site) { return site.op.name.find("backward") != std::string::npos; }
int input_of(const OpSite& site) { return is_backward(site) ? 1 : 0; }
int weight_of(const OpSite& site) { return is_backward(site) ? 2 : 1; }

std::vector<std::int64_t> per_dim(const OpSite& site, std::string_view name, std::int64_t absent) {
  std::size_t dims = to_index(site.shape(input_of(site)).size() - 2);
  return number_per_dim(site.attributes, name, dims, {absent});
}

bool cuts_last_dim(const OpSite& site) {
  const Shape &input = site.shape(input_of(site)), &weight = site.shape(weight_of(site));
  return input.size() == weight.size() && !site.attributes.boolean("transposed", false) &&
         per_dim(site, "padding", 0).back() == 0 && per_dim(site, "dilation", 1).back() == 1 &&
         per_dim(site, "stride", 1).back() == weight[weight.size() - 1];
}

Rows convolution(const OpSite& site) {
  Rows rows;
  auto add = [&](Mark mark) {
    Row row{mark, mark};
    row.insert(row.end(), site.inputs().size() - 1, Mark::replicate());
    rows.push_back(std::move(row));
  };
  add(Mark::shard(0));
  if (cuts_last_dim(site)) add(Mark::plain_shard(site.shape(0).size() - 1));
  return rows;
}

Rows convolution_backward(const OpSite& site) {
  Rows rows;
  auto add = [&](Mark mark) {
    Row row;
    for (std::size_t i = 0; i < site.outputs.size(); ++i)
      row.push_back(!site.outputs[i] ? Mark::absent()
                    : i == 0         ? mark
                                     : Mark::partial(ReduceOp::Sum));
    row.insert(row.end(), {mark, mark, Mark::replicate()});
    rows.push_back(std::move(row));
  };
  add(Mark::shard(0));
  if (cuts_last_dim(site)) add(Mark::plain_shard(site.shape(1).size() - 1));
  return rows;
}

// No window may be split between ranks.
bool keeps_windows(const Placing& placing) {
  const OpSite& site = placing.site;
  int last = site.shape(input_of(site)).size() - 1;
  std::int64_t parts = 1;
  int cuts = 0;
  for (std::size_t axis = 0; axis < placing.sizes.size(); ++axis) {
    const OpPlacement& placement = placing.to[to_index(input_of(site))]->at(axis);
    if (!placement.is_shard_like() || placement.dim != last) continue;
    if (placement.kind == OpPlacement::Kind::StridedShard) return false;
    parts *= placing.sizes[axis];
    ++cuts;
  }
  if (cuts == 0) return true;
  return cuts == 1 &&
         site.shape(input_of(site))[last] % (per_dim(site, "stride", 1).back() * parts) == 0;
}

// PyTorch's handler works on the shards as they are, and labels the result by the row for which it
// would have moved them. Only a gradient is brought to the placements of its input.
std::string_view convolution_fault(const TorchChoice& choice) {
  for (std::size_t i = 0; i < choice.inputs.size(); ++i)
    if (choice.moves(i) && !is_backward(choice.site))
      return "PyTorch 2.15 is wrong or fails here: its convolution handler moves nothing and "
             "treats shards as the whole tensor (pytorch #186129)";
  return {};
}

std::string_view convolution_backward_fault(const TorchChoice& choice) {
  TensorSpec grad = *choice.inputs[0];
  grad.placements = choice.inputs[1]->placements;
  std::vector<const TensorSpec*> inputs = choice.inputs;
  inputs[0] = &grad;
  auto is_moved = [](const TensorSpec& from, const OpPlacements& to) {
    return from.placements == to ? 0.0 : 1.0;
  };
  Rows rows = convolution_backward(choice.site);
  if (choose(choice.site, inputs, rows, choice.sizes, is_moved, {}).cost_us == 0) return {};
  return "PyTorch 2.15 is wrong or fails here: its convolution handler moves only the gradient and "
         "treats shards as the whole tensor (pytorch #191926)";
}

Metas convolution_metas(const OpSite& site) {
  const TensorMeta& input = site.meta(0);
  const Shape& weight = site.shape(1);
  if (input.shape.size() < 3 || weight.size() != input.shape.size())
    throw InputError(
        fmt::format("convolution: expected an input and a weight of 3 to 5 dims, found "
                    "[{}] and [{}]",
                    text(input.shape), text(weight)));
  std::int64_t groups = site.attributes.integer("groups", 1);
  bool transposed = site.attributes.boolean("transposed", false);
  if (groups < 1 || input.shape[1] != (transposed ? weight[0] : weight[1] * groups))
    throw InputError(fmt::format("convolution: the channels of [{}] do not match [{}] in {} groups",
                                 text(input.shape), text(weight), groups));
  std::vector<std::int64_t> stride = per_dim(site, "stride", 1),
                            padding = per_dim(site, "padding", 0),
                            dilation = per_dim(site, "dilation", 1),
                            more = per_dim(site, "output_padding", 0);
  Shape out{input.shape[0], transposed ? weight[1] * groups : weight[0]};
  for (std::size_t i = 0; i < stride.size(); ++i) {
    std::int64_t size = input.shape[static_cast<int>(i) + 2];
    std::int64_t window = dilation[i] * (weight[static_cast<int>(i) + 2] - 1);
    if (stride[i] < 1 || dilation[i] < 1 || (!transposed && size + 2 * padding[i] - window < 1))
      throw InputError("convolution: the windows do not fit the input");
    out.push_back(transposed ? (size - 1) * stride[i] - 2 * padding[i] + window + more[i] + 1
                             : (size + 2 * padding[i] - window - 1) / stride[i] + 1);
  }
  return {TensorMeta{out, input.dtype}};
}

Metas convolution_backward_metas(const OpSite& site) {
  std::vector<bool> mask = site.attributes.booleans("output_mask", {true, true, true});
  mask.resize(3, true);
  std::optional<std::vector<std::int64_t>> bias = site.attributes.optional_integers("bias_sizes");
  Metas out(3);
  if (mask[0]) out[0] = site.meta(1);
  if (mask[1]) out[1] = site.meta(2);
  if (mask[2] && bias) out[2] = TensorMeta{Shape{site.shape(0)[1]}, site.meta(0).dtype};
  return out;
}

constexpr std::string_view kConvolutionReads =
    "stride padding dilation transposed output_padding groups "
    "bias_sizes output_mask";
constexpr Rule kConvolutionRules[]{
    {"convolution", convolution, convolution_metas, kConvolutionReads, false, keeps_windows,
     nullptr, nullptr, convolution_fault},
    {"convolution_backward", convolution_backward, convolution_backward_metas, kConvolutionReads,
     false, keeps_windows, nullptr, nullptr, convolution_backward_fault},
};

}  // namespace

std::span<const Rule> convolution_rules() { return kConvolutionRules; }

}  // namespace reshard
