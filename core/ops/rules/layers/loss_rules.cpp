// SPDX-License-Identifier: BSD-3-Clause
// Negative log likelihood: batches can be cut if losses are summed or kept; a mean needs the count
// of all targets that are not ignored.
#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/ops/attributes.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"

namespace reshard {
namespace {

int class_dim(const Shape& scores) { return scores.size() >= 2 ? 1 : 0; }

// A dim of the scores, other than the classes, and the same dim of the targets.
struct BatchDim {
  int scores, targets;
};

std::vector<BatchDim> batch_dims_of_scores(const Shape& scores) {
  std::vector<BatchDim> out;
  for (int d = 0; d < scores.size(); ++d)
    if (d != class_dim(scores)) out.push_back({d, d < class_dim(scores) ? d : d - 1});
  return out;
}

constexpr Mark kWhole = {}, kAddends = {Mark::Kind::Partial, 0, ReduceOp::Sum};

Rows nll_loss(const OpSite& site) {
  Rows rows;
  const Reduction reduction = loss_reduction(site.attributes);
  for (BatchDim dim : batch_dims_of_scores(site.shape(0))) {
    if (reduction == Reduction::Mean) break;
    Mark targets = Mark::shard(dim.targets);
    Row row = reduction == Reduction::None ? Row{targets, kWhole} : Row{kAddends, kAddends};
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
  bool keeps = loss_reduction(site.attributes) == Reduction::None;
  return {TensorMeta{keeps ? targets : Shape{}, scores.dtype}, TensorMeta{Shape{}, scores.dtype}};
}

// Inputs: grad, scores, targets, weight, total weight.
Rows nll_loss_backward(const OpSite& site) {
  Rows rows;
  const Reduction reduction = loss_reduction(site.attributes);
  auto add = [&](Mark scores, Mark grad, Mark targets, Mark total) {
    Row row{scores, grad, scores, targets};
    if (site.has(3)) row.push_back(kWhole);
    row.push_back(total);
    rows.push_back(std::move(row));
  };
  for (BatchDim dim : batch_dims_of_scores(site.shape(1))) {
    Mark scores = Mark::shard(dim.scores), targets = Mark::shard(dim.targets);
    add(scores, reduction == Reduction::None ? targets : kWhole, targets, kWhole);
    if (reduction == Reduction::Sum) add(scores, kWhole, targets, kAddends);
  }
  // Only a mean uses the total.
  if (reduction != Reduction::Mean) add(kWhole, kWhole, kWhole, kAddends);
  return rows;
}

Metas nll_loss_backward_metas(const OpSite& site) {
  (void)loss_reduction(site.attributes);
  return {site.meta(1)};
}

constexpr Rule kLossRules[]{
    {"nll_loss", nll_loss, nll_loss_metas, "reduction"},
    {"nll_loss_backward", nll_loss_backward, nll_loss_backward_metas, "reduction"},
};

}  // namespace

std::span<const Rule> loss_rules() { return kLossRules; }

}  // namespace reshard
