// SPDX-License-Identifier: BSD-3-Clause
// Compares the decision made here with the one that PyTorch's own rows give.
#include "core/ops/torch_fault.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/ops/candidates.h"

namespace reshard {
namespace {

Decision choice_of_torch(const OpSite& site, const std::vector<const TensorSpec*>& inputs,
                         std::span<const std::int32_t> sizes, const MoveCost& cost,
                         const Choosing& choosing) {
  Choosing as_torch = choosing;
  as_torch.as_torch = true;
  as_torch.list_all = false;
  return choose(site, inputs, rows_of(site, as_torch), sizes, cost, as_torch);
}

}  // namespace

bool TorchChoice::differs() const {
  return right.wanted != torch.wanted || right.outputs != torch.outputs;
}

bool TorchChoice::moves(std::size_t input) const {
  return *right.wanted[input] != inputs[input]->placements;
}

Rows rows_of(const OpSite& site, const Choosing& choosing) {
  const Rule& rule = *site.op.rule;
  Rows out = choosing.as_torch && rule.torch_rows ? rule.torch_rows(site) : rule.rows(site);
  if (!choosing.cuts_plainly || !rule.more_rows) return out;
  for (Row& row : rule.more_rows(site))
    if (std::find(out.begin(), out.end(), row) == out.end()) out.push_back(std::move(row));
  return out;
}

std::string_view torch_fault(const OpSite& site, const std::vector<const TensorSpec*>& inputs,
                             std::span<const std::int32_t> sizes, const MoveCost& cost,
                             const Choosing& choosing, const Decision& right) {
  const Rule& rule = *site.op.rule;
  // A fault is reported only for PyTorch's own choices.
  if (!rule.fault || choosing.cuts_plainly) return {};
  if (!rule.torch_rows && !rule.is_right) return rule.fault({site, sizes, inputs, right, right});
  Decision torch = choice_of_torch(site, inputs, sizes, cost, choosing);
  return rule.fault({site, sizes, inputs, right, torch});
}

std::string_view torch_fault_of_refused(const OpSite& site,
                                        const std::vector<const TensorSpec*>& inputs,
                                        std::span<const std::int32_t> sizes, const MoveCost& cost,
                                        const Choosing& choosing) {
  const Rule& rule = *site.op.rule;
  if (!rule.fault || (!rule.torch_rows && !rule.is_right)) return {};
  try {
    Decision torch = choice_of_torch(site, inputs, sizes, cost, choosing);
    return rule.fault({site, sizes, inputs, Decision{}, torch});
  } catch (const InputError&) {
    return {};
  }
}

bool has_empty_shard(const TensorMeta& meta, const OpPlacements& placements, int dim,
                     std::span<const std::int32_t> sizes) {
  const std::vector<int> axes = axes_cutting(placements, dim);
  if (axes.empty()) return false;
  const Layout layout = layout_of_dim(meta.shape[dim], placements, dim, axes, sizes);
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position)
    if (layout.runs(0, position).empty()) return true;
  return false;
}

}  // namespace reshard
