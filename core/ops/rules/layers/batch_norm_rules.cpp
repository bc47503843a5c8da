// SPDX-License-Identifier: BSD-3-Clause
// Batch norm: each channel has its own statistics over batch and space, so only channels can be
// cut.
#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"

namespace reshard {
namespace {

bool trains(const OpSite& site) {
  return site.op.name.starts_with("_batch_norm_with_update") ||
         site.attributes.boolean("training", false);
}

const TensorMeta& with_channels(const OpSite& site, int input) {
  const TensorMeta& out = site.meta(input);
  if (out.shape.size() < 2)
    throw InputError(fmt::format("{}: expected a tensor of 2 dims or more, found [{}]",
                                 site.op.name, text(out.shape)));
  return out;
}

// Adds marks for `full` tensors with all dims, then for those with only a channel dim: weight,
// bias, statistics.
void add_channels(const OpSite& site, std::size_t full, Row& row) {
  row.insert(row.end(), full, Mark::shard(1));
  row.insert(row.end(), site.inputs().size() - full, Mark::shard(0));
}

Rows batch_norm(const OpSite& site) {
  Row row{Mark::shard(1), Mark::shard(0), Mark::shard(0)};
  if (site.outputs.size() > 3) row.push_back(Mark::replicate());  // a kernel's reserve
  add_channels(site, 1, row);
  return {row};
}

// Statistics are outputs only if they are computed from the batch.
Metas batch_norm_metas(const OpSite& site) {
  const TensorMeta& input = with_channels(site, 0);
  TensorMeta statistics{Shape{trains(site) ? input.shape[1] : 0}, input.dtype};
  Metas out{input, statistics, statistics};
  if (site.op.name.starts_with("_batch_norm_with_update"))
    out.emplace_back(TensorMeta{Shape{0}, DType::U8});
  return out;
}

Rows batch_norm_backward(const OpSite& site) {
  Row row;
  for (std::size_t i = 0; i < site.outputs.size(); ++i)
    row.push_back(!site.outputs[i] ? Mark::absent() : Mark::shard(i == 0 ? 1 : 0));
  add_channels(site, 2, row);
  return {row};
}

Metas batch_norm_backward_metas(const OpSite& site) {
  std::vector<bool> mask = site.attributes.booleans("output_mask", {true, true, true});
  mask.resize(3, false);
  const TensorMeta& input = with_channels(site, 1);
  Metas out(3);
  if (mask[0]) out[0] = input;
  for (std::size_t i = 1; i < 3; ++i)
    if (mask[i])
      out[i] = TensorMeta{Shape{input.shape[1]}, site.has(2) ? site.meta(2).dtype : input.dtype};
  return out;
}

constexpr Rule kBatchNormRules[]{
    {"batch_norm", batch_norm, batch_norm_metas, "training", false},
    {"batch_norm_backward", batch_norm_backward, batch_norm_backward_metas, "output_mask", false},
};

}  // namespace

std::span<const Rule> batch_norm_rules() { return kBatchNormRules; }

}  // namespace reshard
