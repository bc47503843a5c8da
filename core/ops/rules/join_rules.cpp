// SPDX-License-Identifier: BSD-3-Clause
// Operators that join, split and move elements along dims: those dims are not sharded, the others
// can be.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/ops/attributes.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"

namespace reshard {
namespace {

// ---- cat

// torch.cat ignores 1-d tensors without elements.
bool is_nothing(const TensorMeta& meta) { return meta.shape.size() == 1 && meta.shape[0] == 0; }

const TensorMeta& first_of_cat(const OpSite& site) {
  for (const TensorMeta* tensor : site.inputs())
    if (!is_nothing(*tensor)) return *tensor;
  return site.meta(0);
}

int cat_dim(const OpSite& site) { return site.dim("dim", 0, first_of_cat(site).shape.size()); }

Rows cat(const OpSite& site) {
  Rows rows;
  auto add = [&](Mark mark) {
    Row row{mark};
    for (const TensorMeta* tensor : site.inputs())
      row.push_back(is_nothing(*tensor) ? Mark::replicate() : mark);
    rows.push_back(std::move(row));
  };
  for (int d = 0; d < first_of_cat(site).shape.size(); ++d)
    if (d != cat_dim(site)) add(Mark::shard(d));
  for (ReduceOp op : kPartials) add(Mark::partial(op));
  return rows;
}

Metas cat_metas(const OpSite& site) {
  int dim = cat_dim(site);
  Shape shape = first_of_cat(site).shape;
  shape[dim] = 0;
  for (const TensorMeta* tensor : site.inputs()) {
    if (is_nothing(*tensor)) continue;
    bool fits = tensor->shape.size() == shape.size();
    for (int d = 0; fits && d < shape.size(); ++d) fits = d == dim || tensor->shape[d] == shape[d];
    if (!fits)
      throw InputError(fmt::format("cat: [{}] and [{}] differ outside dim {}",
                                   text(first_of_cat(site).shape), text(tensor->shape), dim));
    shape[dim] += tensor->shape[dim];
  }
  return {TensorMeta{shape, promote(site.inputs(), {})}};
}

// ---- split, unbind

void check_outputs(std::int64_t count) {
  if (count > kMaxCallOutputs)
    throw InputError(
        fmt::format("expected at most {} outputs of a call, found {}", kMaxCallOutputs, count));
}

std::vector<std::int64_t> split_sizes(const OpSite& site) {
  std::int64_t length = site.shape(0)[site.dim("dim", 0)];
  for (std::string_view name : {"split_sizes", "sizes", "indices_or_sections"})
    if (site.attributes.has(name)) return site.attributes.integers(name);
  bool chunks = site.op.name == "chunk";
  std::int64_t size = site.attributes.integer(chunks ? "chunks" : "split_size");
  if (chunks && size > 0) size = std::max<std::int64_t>(ceil_div(length, size), 1);
  if (size > 0) check_outputs(ceil_div(length, size));
  return pieces_of(length, size);
}

Rows split(const OpSite& site) {
  Rows rows;
  int count = static_cast<int>(site.outputs.size()) + 1;
  shard_equally(site, {site.dim("dim", 0)}, count, rows);
  keep_partials(kPartials, count, rows);
  return rows;
}

Metas split_metas(const OpSite& site) {
  int dim = site.dim("dim", 0);
  std::int64_t sum = 0;
  Metas out;
  for (std::int64_t size : split_sizes(site)) {
    TensorMeta meta = site.meta(0);
    meta.shape[dim] = size;
    sum += size;
    out.emplace_back(meta);
  }
  if (sum != site.shape(0)[dim])
    throw InputError(fmt::format("attr split_sizes: expected sizes that add up to {}, found {}",
                                 site.shape(0)[dim], sum));
  return out;
}

// Rows that cut any dim but one, which the outputs do not have.
Rows without_dim(const OpSite& site, int dim) {
  Rows rows;
  for (int d = 0; d < site.shape(0).size(); ++d) {
    if (d == dim) continue;
    rows.emplace_back(site.outputs.size(), Mark::shard(reduced_dim(d, {dim}, false)));
    rows.back().push_back(Mark::shard(d));
  }
  keep_partials(kPartials, static_cast<int>(site.outputs.size()) + 1, rows);
  return rows;
}

Rows unbind(const OpSite& site) { return without_dim(site, site.dim("dim", 0)); }

Metas unbind_metas(const OpSite& site) {
  int dim = site.dim("dim", 0);
  TensorMeta out{reduced_shape(site.shape(0), {dim}, false), site.meta(0).dtype};
  check_outputs(site.shape(0)[dim]);
  return Metas(to_index(site.shape(0)[dim]), out);
}

// unbind is a view: its input must not move.
bool stays(const Placing& placing) {
  int dim = placing.site.dim("dim", 0);
  for (const OpPlacement& placement : placing.from[0]->placements)
    if (placement.is_shard_like() && placement.dim == dim)
      throw InputError(
          fmt::format("Attempted to unbind along the sharded dimension {}: redistribute "
                      "the tensor before",
                      dim));
  return *placing.to[0] == placing.from[0]->placements;
}

// ---- select, slice

Rows select(const OpSite& site) { return without_dim(site, site.dim("dim", 0)); }

Metas select_metas(const OpSite& site) {
  int dim = site.dim("dim", 0);
  (void)index_in_dim(site.attributes, site.shape(0)[dim]);
  return {TensorMeta{reduced_shape(site.shape(0), {dim}, false), site.meta(0).dtype}};
}

Rows slice(const OpSite& site) {
  int dim = site.dim("dim", 0);
  std::int64_t length = site.shape(0)[dim];
  DimSlice part = slice_in_dim(site.attributes, length);
  bool all = part.start == 0 && part.end == length && part.step == 1;
  Rows rows;
  shard_equally(site, all ? std::vector<int>{} : std::vector<int>{dim}, 2, rows);
  keep_partials(kPartials, 2, rows);
  return rows;
}

Metas slice_metas(const OpSite& site) {
  TensorMeta out = site.meta(0);
  int dim = site.dim("dim", 0);
  out.shape[dim] = slice_in_dim(site.attributes, out.shape[dim]).count();
  return {out};
}

Shape shape_attribute(const OpSite& site, std::string_view name) {
  Shape out;
  std::vector<std::int64_t> sizes = site.attributes.integers(name);
  if (sizes.size() > to_index(kMaxDims))
    throw NotCovered(fmt::format("attr {}: expected at most {} sizes", name, kMaxDims));
  for (std::int64_t size : sizes) {
    if (size < 0) throw InputError(fmt::format("attr {}: expected sizes, found {}", name, size));
    out.push_back(size);
  }
  return out;
}

// The gradient of a part, written into zeros.
Rows slice_backward(const OpSite& site) {
  Rows rows;
  shard_equally(site, {site.dim("dim", 0)}, 2, rows);
  keep_partials(kPartials, 2, rows);
  return rows;
}

Rows select_backward(const OpSite& site) {
  int dim = site.dim("dim", 0, site.shape(0).size() + 1);
  Rows rows;
  for (int d = 0; d < site.shape(0).size(); ++d)
    rows.push_back({Mark::shard(d < dim ? d : d + 1), Mark::shard(d)});
  keep_partials(kPartials, 2, rows);
  return rows;
}

Metas put_into_metas(const OpSite& site) {
  return {TensorMeta{shape_attribute(site, "input_sizes"), site.meta(0).dtype}};
}

Rows slice_scatter(const OpSite& site) {
  Rows rows;
  shard_equally(site, {site.dim("dim", 0)}, 3, rows);
  keep_partials(kPartials, 3, rows);
  return rows;
}

// Cuts dims other than the diagonal's two; in `src` the diagonal is the last dim.
Rows diagonal_scatter(const OpSite& site) {
  std::vector<int> gone = diagonal_dims(site, 0, 1, site.shape(0).size());
  Rows rows;
  for (int d = 0; d < site.shape(0).size(); ++d)
    if (!contains(gone, d))
      rows.push_back({Mark::shard(d), Mark::shard(d), Mark::shard(reduced_dim(d, gone, false))});
  return rows;
}

Rows select_scatter(const OpSite& site) {
  int dim = site.dim("dim", 0);
  Rows rows;
  for (int d = 0; d < site.shape(0).size(); ++d)
    if (d != dim)
      rows.push_back({Mark::shard(d), Mark::shard(d), Mark::shard(reduced_dim(d, {dim}, false))});
  return rows;
}

// ---- pad, flip, roll

Rows pad(const OpSite& site) {
  std::vector<std::int64_t> pads = site.attributes.integers("pad");
  std::vector<int> padded;
  for (std::size_t i = 0; 2 * i + 1 < pads.size(); ++i)
    if (pads[2 * i] != 0 || pads[2 * i + 1] != 0)
      padded.push_back(site.shape(0).size() - 1 - static_cast<int>(i));
  Rows rows;
  shard_equally(site, padded, 2, rows);
  // A partial sum would add up a padding value other than 0.
  bool sums = padded.empty() || site.attributes.number("value", 0) == 0;
  for (ReduceOp op : kPartials)
    if (sums || op != ReduceOp::Sum) keep_partials({op}, 2, rows);
  return rows;
}

Metas pad_metas(const OpSite& site) {
  TensorMeta out = site.meta(0);
  std::vector<std::int64_t> pads = site.attributes.integers("pad");
  if (pads.size() % 2 != 0 || pads.size() / 2 > to_index(out.shape.size()))
    throw InputError("attr pad: expected two numbers for each of the last dims");
  for (std::size_t i = 0; 2 * i < pads.size(); ++i) {
    std::int64_t& size = out.shape[out.shape.size() - 1 - static_cast<int>(i)];
    size += pads[2 * i] + pads[2 * i + 1];
    if (size < 0) throw InputError("attr pad: more elements are cut off than exist");
  }
  return {out};
}

Rows turn(const OpSite& site) {
  std::optional<std::vector<int>> dims = site.dims("dims");
  Rows rows;
  shard_equally(site, dims && !dims->empty() ? *dims : all_dims(site.shape(0).size()), 2, rows);
  keep_partials(kPartials, 2, rows);
  return rows;
}

constexpr Rule kJoinRules[]{
    {"cat", cat, cat_metas, "dim"},
    {"split", split, split_metas, "split_size split_sizes sizes chunks dim"},
    {"unbind", unbind, unbind_metas, "dim", true, stays},
    {"select", select, select_metas, "dim index", true},
    {"slice", slice, slice_metas, "dim start end step length", true},
    {"slice_backward", slice_backward, put_into_metas, "input_sizes dim", true},
    {"select_backward", select_backward, put_into_metas, "input_sizes dim", true},
    {"slice_scatter", slice_scatter, like_first, "dim", true},
    {"diagonal_scatter", diagonal_scatter, like_first, "dim1 dim2", false},
    {"select_scatter", select_scatter, like_first, "dim", false},
    {"pad", pad, pad_metas, "pad value", false},
    {"turn", turn, like_first, "dims", false},
};

}  // namespace

std::span<const Rule> join_rules() { return kJoinRules; }

}  // namespace reshard
