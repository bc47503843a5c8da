// SPDX-License-Identifier: BSD-3-Clause
// Views for which PyTorch has rows instead of a rule over the map: t, and the copies that it takes
// apart.
#include "core/base/errors.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"
#include "core/ops/views/view_map.h"

namespace reshard {
namespace {

ViewMap map_of(const OpSite& site) { return view_map(site.op.name, site.meta(0), site.attributes); }

// A dim that the output has keeps its cut, under its new number.
Rows rename(const OpSite& site) {
  ViewMap map = map_of(site);
  Rows rows;
  for (int d = 0; d < map.input.size(); ++d)
    for (int o = 0; o < map.output.size(); ++o)
      if (map.dim(o).kind == ViewDim::Kind::Input && map.dim(o).first == d)
        rows.push_back({Mark::shard(o), Mark::shard(d)});
  for (ReduceOp op : kPartials) keep_partials({op}, 2, rows);
  return rows;
}

Metas rename_metas(const OpSite& site) {
  return {TensorMeta{map_of(site).output, site.meta(0).dtype}};
}

// Pairs along the last dim are numbers, which have no order.
Rows as_complex(const OpSite& site) {
  Rows rows;
  cut_alike(site, {site.shape(0).size() - 1}, 2, rows);
  keep_partials({ReduceOp::Sum, ReduceOp::Avg}, 2, rows);
  return rows;
}

Metas as_complex_metas(const OpSite& site) {
  Shape shape = site.shape(0);
  if (shape.size() == 0 || shape[shape.size() - 1] != 2 || site.meta(0).dtype != DType::F32)
    throw InputError("view_as_complex: expected a tensor of f32 whose last dim is of 2");
  return {TensorMeta{reduced_shape(shape, {shape.size() - 1}, false), DType::C64}};
}

constexpr Rule kRules[]{
    {"rename", rename, rename_metas, "dim dims dim0 dim1"},
    {"as_complex", as_complex, as_complex_metas},
};

}  // namespace

std::span<const Rule> rename_rules() { return kRules; }

}  // namespace reshard
