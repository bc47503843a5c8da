// SPDX-License-Identifier: BSD-3-Clause
// Reductions, scans, sorts. If the result can be reduced from results for the parts, a cut of a
// reduced dim gives a partial; else only other dims can be cut.
#include <fmt/core.h>

#include <cmath>
#include <map>

#include "core/base/errors.h"
#include "core/ops/attributes.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"
#include "core/ops/torch_fault.h"

namespace reshard {
namespace {

// An absent or empty list of dims means all dims.
std::vector<int> reduced_dims(const OpSite& site) {
  std::optional<std::vector<int>> dims = site.dims("dim");
  return dims && !dims->empty() ? *dims : all_dims(site.shape(0).size());
}

bool keeps_dim(const OpSite& site) { return site.attributes.boolean("keepdim", false); }

// The shape of the first tensor after the reduction. Its dims are read before keepdim, so that the
// error does not depend on the compiler if both are wrong.
Shape left_of(const OpSite& site, const std::vector<int>& reduced) {
  return reduced_shape(site.shape(0), reduced, keeps_dim(site));
}

// Adds rows that cut remaining dims, in all outputs the same, and, if `gone` is given, reduced
// dims, which then make the outputs `gone`.
void reduce_rows(const OpSite& site, const std::vector<int>& reduced, std::optional<Mark> gone,
                 Rows& rows) {
  for (int d = 0; d < site.shape(0).size(); ++d) {
    if (contains(reduced, d) && !gone) continue;
    Mark out = contains(reduced, d) ? *gone : Mark::shard(reduced_dim(d, reduced, keeps_dim(site)));
    Row row(site.outputs.size(), out);
    row.push_back(Mark::shard(d));
    rows.push_back(std::move(row));
  }
}

ReduceOp reduction_of(const OpSite& site) {
  static const std::map<std::string_view, ReduceOp> by_name{{"sum", ReduceOp::Sum},
                                                            {"product", ReduceOp::Product},
                                                            {"max", ReduceOp::Max},
                                                            {"min", ReduceOp::Min}};
  return by_name.at(site.op.partials);
}

Rows reduce(const OpSite& site) {
  Rows rows;
  Mark partial = Mark::partial(reduction_of(site));
  reduce_rows(site, reduced_dims(site), partial, rows);
  rows.push_back({partial, partial});
  return rows;
}

// An empty shard has no largest element.
std::string_view fault_of_empty(const TorchChoice& choice, const std::vector<int>& reduced) {
  for (int dim : reduced)
    if (has_empty_shard(choice.inputs[0]->meta, *choice.right.wanted[0], dim, choice.sizes))
      return "PyTorch 2.15 hangs here: a rank with an empty shard of the reduced dim raises, and "
             "the others wait for it";
  return {};
}

constexpr std::string_view kFailsWithOut =
    "PyTorch 2.15 raises an internal error here: its rule for this operator cannot handle out=";

std::string_view mean_fault(const TorchChoice& choice) {
  return choice.site.op.name == "mean.out" ? kFailsWithOut : std::string_view();
}

std::string_view reduce_fault(const TorchChoice& choice) {
  if (choice.site.op.name == "amax.out") return kFailsWithOut;
  ReduceOp op = reduction_of(choice.site);
  if (op != ReduceOp::Max && op != ReduceOp::Min) return {};
  return fault_of_empty(choice, reduced_dims(choice.site));
}

Rows reduce_whole(const OpSite& site) {
  Rows rows;
  reduce_rows(site, reduced_dims(site), std::nullopt, rows);
  return rows;
}

Rows mean(const OpSite& site) {
  Rows rows;
  Mark partial = Mark::partial(ReduceOp::Avg);
  reduce_rows(site, reduced_dims(site), partial, rows);
  rows.push_back({partial, partial});
  return rows;
}

// Sums and products of integers and bools are i64.
Metas reduce_metas(const OpSite& site) {
  const TensorMeta& input = site.meta(0);
  bool adds = site.op.partials == "sum" || site.op.partials == "product";
  bool counts = adds && !is_floating(input.dtype) && input.dtype != DType::C64;
  DType dtype = dtype_or(site.attributes, counts ? DType::I64 : input.dtype);
  return {TensorMeta{left_of(site, reduced_dims(site)), dtype}};
}

// For var, std, var_mean, logsumexp, any, all, mean.
Metas same_dtype_metas(const OpSite& site) {
  const TensorMeta& input = site.meta(0);
  std::string_view name = site.op.name;
  bool boolean = name.starts_with("any") || name.starts_with("all");
  DType dtype = boolean ? (input.dtype == DType::U8 ? DType::U8 : DType::Bool)
                        : dtype_or(site.attributes, input.dtype);
  if (name.starts_with("logsumexp")) dtype = as_floating(dtype);
  TensorMeta out{left_of(site, reduced_dims(site)), dtype};
  Metas outs{out};
  if (name.starts_with("var_mean")) outs.push_back(out);
  return outs;
}

// ---- norms

std::vector<int> norm_dims(const OpSite& site) { return reduced_dims(site); }

bool is_power_sum(const OpSite& site) {  // a norm without its root
  return site.op.name.find("powsum") != std::string::npos;
}

Mark norm_partial(const OpSite& site) {
  double order = norm_order(site.attributes);
  const OpValue* written = site.attributes.find(norm_order_name(site.attributes));
  bool is_number = written && written->kind == OpValue::Kind::Number;
  return is_power_sum(site) || order == 0 ? Mark::partial(ReduceOp::Sum)
         : order == INFINITY              ? Mark::partial(ReduceOp::Max)
         : order == -INFINITY             ? Mark::partial(ReduceOp::Min)
                                          : Mark::of_norm(order, is_number);
}

Rows norm(const OpSite& site) {
  Rows rows;
  const Mark partial = norm_partial(site);
  reduce_rows(site, norm_dims(site), partial, rows);
  if (is_power_sum(site) || std::isinf(norm_order(site.attributes)))
    rows.push_back({partial, partial});
  return rows;
}

// PyTorch takes norms of partials for partials of the norm. But a power of a sum is not a sum of
// powers, and with a partial maximum the magnitude of the most negative element is lost. Only if no
// element is negative is the maximum of norms the norm of the maximum.
bool keeps_norm(const Placing& placing) {
  const Mark partial = norm_partial(placing.site);
  if (partial.kind != Mark::Kind::Partial) return true;
  auto is_kept = [&](const OpPlacement& placement) { return placement.is_partial(partial.op); };
  const OpPlacements& wanted = *placing.to[0];
  if (std::none_of(wanted.begin(), wanted.end(), is_kept)) return true;
  return std::isinf(norm_order(placing.site.attributes)) && placing.from[0]->at_least_zero;
}

std::string_view norm_fault(const TorchChoice& choice) {
  if (choice.differs())
    return "PyTorch 2.15 is silently wrong here: it takes norms of addends for addends of the "
           "norm, "
           "though what is most negative, or a power, is lost";
  double order = norm_order(choice.site.attributes);
  return std::isinf(order) ? fault_of_empty(choice, norm_dims(choice.site)) : std::string_view();
}

// A mean of means is the mean only if all parts have the same number of elements.
bool averages_evenly(const Placing& placing) {
  for (int dim : reduced_dims(placing.site))
    if (!is_even(placing, 0, dim)) return false;
  return true;
}

Metas norm_metas(const OpSite& site) {
  const TensorMeta& input = site.meta(0);
  DType dtype = dtype_or(site.attributes, as_floating(input.dtype));
  return {TensorMeta{left_of(site, norm_dims(site)), dtype}};
}

// ---- values with their indices

// kthvalue, mode, sort and topk work along the last dim by default.
int index_dim(const OpSite& site) {
  bool last = site.op.name.starts_with("kthvalue") || site.op.name.starts_with("mode") ||
              site.op.name.starts_with("sort") || site.op.name.starts_with("topk");
  return last || site.attributes.has("dim") ? site.dim("dim", -1) : site.dim("dim", 0);
}

Rows reduce_indices(const OpSite& site) {
  Rows rows;
  reduce_rows(site, {index_dim(site)}, std::nullopt, rows);
  return rows;
}

Metas indices_metas(const OpSite& site) {
  const TensorMeta& input = site.meta(0);
  Shape shape = left_of(site, {index_dim(site)});
  return {TensorMeta{shape, input.dtype}, TensorMeta{shape, DType::I64}};
}

std::vector<int> argmax_dims(const OpSite& site) {
  if (!site.attributes.has("dim")) return all_dims(site.shape(0).size());
  return {site.dim("dim", 0)};
}

Rows argmax(const OpSite& site) {
  Rows rows;
  reduce_rows(site, argmax_dims(site), std::nullopt, rows);
  return rows;
}

// PyTorch's handler replicates what is reduced, and changes nothing else.
bool only_makes_whole(const Placing& placing) {
  std::vector<int> reduced = argmax_dims(placing.site);
  for (std::size_t axis = 0; axis < placing.sizes.size(); ++axis) {
    const OpPlacement& from = placing.from[0]->placements[axis];
    bool reduces = from.is_partial() || (from.is_shard_like() && contains(reduced, from.dim));
    if (reduces && !placing.to[0]->at(axis).is_replicate()) return false;
  }
  return true;
}

Metas argmax_metas(const OpSite& site) {
  return {TensorMeta{left_of(site, argmax_dims(site)), DType::I64}};
}

Rows sort(const OpSite& site) {
  Rows rows;
  shard_equally(site, {index_dim(site)}, 3, rows);
  return rows;
}

Metas sort_metas(const OpSite& site) {
  TensorMeta values = site.meta(0);
  if (site.op.name.starts_with("topk") && values.shape.size() > 0) {
    std::int64_t k = site.attributes.integer("k");
    int dim = index_dim(site);
    if (k < 0 || k > values.shape[dim])
      throw InputError(fmt::format("attr k: expected 0 to {}, found {}", values.shape[dim], k));
    values.shape[dim] = k;
  }
  return {values, TensorMeta{values.shape, DType::I64}};
}

// ---- scans

Rows scan(const OpSite& site) {
  Rows rows;
  shard_equally(site, {site.dim("dim", 0)}, 2, rows);
  if (site.op.name.starts_with("cumsum")) keep_partials({ReduceOp::Sum, ReduceOp::Avg}, 2, rows);
  return rows;
}

Metas scan_metas(const OpSite& site) {
  (void)site.attributes.integer("dim");
  const TensorMeta& input = site.meta(0);
  bool counts = !is_floating(input.dtype) && !site.op.name.starts_with("logcumsumexp");
  bool in_place = site.op.in_place;
  return {TensorMeta{
      input.shape,
      in_place ? input.dtype : dtype_or(site.attributes, counts ? DType::I64 : input.dtype)}};
}

Rows scan_indices(const OpSite& site) {
  Rows rows;
  shard_equally(site, {site.dim("dim", 0)}, 3, rows);
  return rows;
}

Metas scan_indices_metas(const OpSite& site) {
  (void)site.attributes.integer("dim");
  return {site.meta(0), TensorMeta{site.shape(0), DType::I64}};
}

// ---- operators that need the whole tensor

Rows nothing(const OpSite&) { return {}; }

// median of all elements; tril and triu; item.
Metas whole_metas(const OpSite& site) {
  if (site.op.name.find("median") == std::string::npos) return like_first(site);
  return {TensorMeta{Shape{}, site.meta(0).dtype}};
}

Metas no_metas(const OpSite&) { return {}; }

std::string_view item_fault(const TorchChoice& choice) {
  const TensorSpec& input = *choice.inputs[0];
  for (std::size_t axis = 0; axis < choice.sizes.size(); ++axis) {
    if (choice.sizes[axis] == 1) continue;
    if (input.placements[axis].is_partial())
      return "PyTorch 2.15 is silently wrong here: item() gives every rank its own addend "
             "(pytorch #144054, #166638)";
    if (input.placements[axis].is_shard_like())
      return "PyTorch 2.15 fails here: item() raises on the ranks that have no element";
  }
  return {};
}

Metas diagonal_metas(const OpSite& site) {
  const Shape& shape = site.shape(0);
  std::int64_t offset =
      site.attributes.integer(site.attributes.find("diagonal") ? "diagonal" : "offset", 0);
  std::int64_t away = offset < 0 ? -offset : offset;
  bool embeds =
      site.op.name.starts_with("diag_embed") || (site.op.name == "diag" && shape.size() == 1);
  Shape out;
  if (embeds) {
    std::vector<int> of = diagonal_dims(site, -2, -1, shape.size() + 1);
    for (int d = 0, from = 0; d < shape.size() + 1; ++d)
      add_dim(out, contains(of, d) ? shape[shape.size() - 1] + away : shape[from++]);
    return {TensorMeta{out, site.meta(0).dtype}};
  }
  std::vector<int> of = diagonal_dims(site, 0, 1, shape.size());
  for (int d = 0; d < shape.size(); ++d)
    if (!contains(of, d)) out.push_back(shape[d]);
  std::int64_t rows = shape[of[0]] + std::min<std::int64_t>(offset, 0),
               columns = shape[of[1]] - std::max<std::int64_t>(offset, 0);
  out.push_back(std::max<std::int64_t>(std::min(rows, columns), 0));
  return {TensorMeta{out, site.meta(0).dtype}};
}

// Counts per bin. The ends of the bins must be the same on all ranks.
Rows histc(const OpSite& site) {
  Rows rows;
  bool ends = site.attributes.number("min", 0) != site.attributes.number("max", 0);
  for (int d = 0; d < site.shape(0).size() && ends; ++d)
    rows.push_back({Mark::partial(ReduceOp::Sum), Mark::shard(d)});
  return rows;
}

Metas histc_metas(const OpSite& site) {
  return {TensorMeta{Shape{site.attributes.integer("bins", 100)}, site.meta(0).dtype}};
}

Rows equal_rows(const OpSite& site) {
  Rows rows;
  for (int d = 0; d < std::min(site.shape(0).size(), site.shape(1).size()); ++d)
    rows.push_back({Mark::shard(d), Mark::shard(d)});
  return rows;
}

constexpr Rule kReductionRules[]{
    {"reduce", reduce, reduce_metas, "dim keepdim dtype", true, nullptr, nullptr, nullptr,
     reduce_fault},
    {"reduce_whole", reduce_whole, same_dtype_metas, "dim keepdim", true},
    {"mean", mean, same_dtype_metas, "dim keepdim dtype", false, averages_evenly, nullptr, nullptr,
     mean_fault},
    {"norm", norm, norm_metas, "ord p dim keepdim dtype", true, nullptr, nullptr, keeps_norm,
     norm_fault},
    {"reduce_indices", reduce_indices, indices_metas, "dim keepdim", true},
    {"argmax", argmax, argmax_metas, "dim keepdim", true, only_makes_whole},
    {"sort", sort, sort_metas, "dim k", true},
    {"scan", scan, scan_metas, "dim dtype", true},
    {"scan_indices", scan_indices, scan_indices_metas, "dim", true},
    {"whole", nothing, whole_metas, "", false},
    {"item", nothing, no_metas, "", false, nullptr, nullptr, nullptr, item_fault},
    {"diagonal", nothing, diagonal_metas, "diagonal offset dim1 dim2", false},
    {"histc", histc, histc_metas, "bins min max", true},
    {"equal", equal_rows, no_metas, "", true},
};

}  // namespace

std::span<const Rule> reduction_rules() { return kReductionRules; }

}  // namespace reshard
