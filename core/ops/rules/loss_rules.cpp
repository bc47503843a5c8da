// SPDX-License-Identifier: BSD-3-Clause
// Negative log likelihood: batches can be cut if losses are summed or kept; a mean needs the count
// of all targets that are not ignored.
#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"

namespace reshard {
namespace {

enum Reduction : std::int64_t { kNone = 0, kMean = 1, kSum = 2 };

std::int64_t reduction_of(const OpSite& site) {
  std::int64_t reduction = site.attributes.integer("reduction", kMean);
  if (reduction < kNone || reduction > kSum)
    throw InputError(
        fmt::format("attr reduction: expected 0 (none), 1 (mean) or 2 (sum), found {}", reduction));
  return reduction;
}

int class_dim(const Shape& scores) { return scores.size() >= 2 ? 1 : 0; }

// A dim of the scores, other than the classes, and the same dim of the targets.
struct BatchDim {
  int scores, targets;
};

std::vector<BatchDim> batch_dims(const Shape& scores) {
  std::vector<BatchDim> out;
  for (int d = 0; d < scores.size(); ++d)
    if (d != class_dim(scores)) out.push_back({d, d < class_dim(scores) ? d : d - 1});
  return out;
}

constexpr Mark kWhole = {}, kAddends = {Mark::Kind::Partial, 0, ReduceOp::Sum};

Rows nll_loss(const OpSite& site) {
  Rows rows;
  std::int64_t reduction = reduction_of(site);
  for (BatchDim dim : batch_dims(site.shape(0))) {
    if (reduction == kMean) break;
    Mark targets = Mark::shard(dim.targets);
    Row row = reduction == kNone ? Row{targets, kWhole} : Row{kAddends, kAddends};
    row.push_back(Mark::shard(dim.scores));
    row.push_back(targets);
    if (site.has(2)) row.push_back(kWhole);
    rows.push_back(std::move(row));
  }
  return rows;
}

Metas nll_loss_metas(const OpSite& site) {
  const TensorMeta& scores = site.meta(0);
  Shape targets = reduced_shape(scores.shape, {class_dim(scores.shape)}, false);
  if (targets != site.shape(1))
    throw InputError(fmt::format("{}: expected targets [{}], found [{}]", site.op.name,
                                 text(targets), text(site.shape(1))));
  bool keeps = reduction_of(site) == kNone;
  return {TensorMeta{keeps ? targets : Shape{}, scores.dtype}, TensorMeta{Shape{}, scores.dtype}};
}

// Inputs: grad, scores, targets, weight, total weight.
Rows nll_loss_backward(const OpSite& site) {
  Rows rows;
  std::int64_t reduction = reduction_of(site);
  auto add = [&](Mark scores, Mark grad, Mark targets, Mark total) {
    Row row{scores, grad, scores, targets};
    if (site.has(3)) row.push_back(kWhole);
    row.push_back(total);
    rows.push_back(std::move(row));
  };
  for (BatchDim dim : batch_dims(site.shape(1))) {
    Mark scores = Mark::shard(dim.scores), targets = Mark::shard(dim.targets);
    add(scores, reduction == kNone ? targets : kWhole, targets, kWhole);
    if (reduction == kSum) add(scores, kWhole, targets, kAddends);
  }
  // Only a mean uses the total.
  if (reduction != kMean) add(kWhole, kWhole, kWhole, kAddends);
  return rows;
}

Metas nll_loss_backward_metas(const OpSite& site) {
  (void)reduction_of(site);
  return {site.meta(1)};
}

constexpr Rule kRules[]{
    {"nll_loss", nll_loss, nll_loss_metas, "reduction"},
    {"nll_loss_backward", nll_loss_backward, nll_loss_backward_metas, "reduction"},
};

}  // namespace

std::span<const Rule> loss_rules() { return kRules; }

}  // namespace reshard
