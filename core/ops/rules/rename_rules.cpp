// SPDX-License-Identifier: BSD-3-Clause
// Views for which PyTorch has rows instead of a rule over a map: t, and the copying forms that it
// decomposes.
#include "core/base/errors.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"
#include "core/ops/views/view_map.h"

namespace reshard {
namespace {

ViewMap map_of(const OpSite& site) { return view_map(site.op.name, site.meta(0), site.attributes); }

// A dim that the output also has keeps its cut, under its new index.
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

// Pairs along the last dim become complex numbers, which have no order.
Rows as_complex(const OpSite& site) {
  Rows rows;
  shard_equally(site, {site.shape(0).size() - 1}, 2, rows);
  keep_partials({ReduceOp::Sum, ReduceOp::Avg}, 2, rows);
  return rows;
}

Metas as_complex_metas(const OpSite& site) {
  Shape shape = site.shape(0);
  if (shape.size() == 0 || shape[shape.size() - 1] != 2 || site.meta(0).dtype != DType::F32)
    throw InputError("view_as_complex: expected an f32 tensor with a last dim of length 2");
  return {TensorMeta{reduced_shape(shape, {shape.size() - 1}, false), DType::C64}};
}

// The reverse. The last dim becomes two; it keeps its cut if all parts are of the same size.
Rows as_real(const OpSite& site) {
  Rows rows;
  shard_equally(site, {}, 2, rows);
  keep_partials(kPartials, 2, rows);
  return rows;
}

bool cuts_last_evenly(const Placing& placing) {
  return is_even(placing, 0, placing.from[0]->meta.shape.size() - 1);
}

Metas as_real_metas(const OpSite& site) {
  const TensorMeta& input = site.meta(0);
  if (input.dtype != DType::C64 || input.shape.size() == 0)
    throw InputError("view_as_real: expected a c64 tensor of at least 1 dim");
  TensorMeta out{input.shape, DType::F32};
  add_dim(out.shape, 2);
  return {out};
}

// ---- transforms along whole dims

// Linear. The maximum of transforms is not the transform of the maximum (PyTorch assumes it is).
Rows fourier(const OpSite& site) {
  Rows rows;
  std::optional<std::vector<int>> dims = site.dims("dim");
  shard_equally(site, dims.value_or(std::vector<int>{}), 2, rows);
  keep_partials({ReduceOp::Sum, ReduceOp::Avg}, 2, rows);
  return rows;
}

Metas fourier_metas(const OpSite& site) {
  TensorMeta out = site.meta(0);
  std::optional<std::vector<int>> dims = site.dims("dim");
  if (!dims || dims->empty()) throw InputError(site.op.name + ": expected dims to transform");
  bool from_real = site.op.name.starts_with("_fft_r2c"),
       to_real = site.op.name.starts_with("_fft_c2r");
  if (from_real ? out.dtype != DType::F32 : out.dtype != DType::C64)
    throw InputError(site.op.name + (from_real ? ": expected f32" : ": expected c64"));
  for (int dim : *dims)
    if (out.shape[dim] == 0) throw InputError(site.op.name + ": expected dims with elements");
  std::int64_t& last = out.shape[dims->back()];
  if (from_real && site.attributes.boolean("onesided", true)) last = last / 2 + 1;
  if (to_real) {
    last = site.attributes.integer("last_dim_size");
    if (last < 1) throw InputError("attr last_dim_size: expected 1 or more");
  }
  out.dtype = to_real ? DType::F32 : DType::C64;
  return {out};
}

constexpr Rule kRenameRules[]{
    {"rename", rename, rename_metas, "dim dims dim0 dim1"},
    {"as_complex", as_complex, as_complex_metas},
    {"as_real", as_real, as_real_metas, "", true, cuts_last_evenly},
    {"fourier", fourier, fourier_metas, "dim onesided last_dim_size"},
};

}  // namespace

std::span<const Rule> rename_rules() { return kRenameRules; }

}  // namespace reshard
