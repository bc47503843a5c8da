// SPDX-License-Identifier: BSD-3-Clause
// Operators that copy a tensor, make one like it, or fill one, with constants or random numbers.
#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"
#include "core/ops/torch_fault.h"

namespace reshard {
namespace {

// clone, detach, fill_: the output is placed like the tensor. A constant other than 0 in every
// addend of a sum would change the value (PyTorch keeps such partials).
Rows keep(const OpSite& site) {
  Rows rows;
  shard_equally(site, {}, 2, rows);
  // Reinterpreted addends do not add up to the reinterpreted value (PyTorch keeps such partials
  // too).
  bool reads_bits = site.op.name == "view.dtype" && site.outputs[0]->dtype != site.meta(0).dtype;
  if (reads_bits) return rows;
  const OpValue* value = site.attributes.find("value");
  bool adds_up = !value || site.attributes.number("value") == 0;
  for (ReduceOp op : kPartials)
    if (adds_up || op != ReduceOp::Sum) keep_partials({op}, 2, rows);
  return rows;
}

Rows keep_rows_of_torch(const OpSite& site) {
  Rows rows;
  shard_equally(site, {}, 2, rows);
  keep_partials(kPartials, 2, rows);
  return rows;
}

std::string_view keep_fault(const TorchChoice& choice) {
  if (!choice.differs()) return {};
  return choice.site.op.name == "view.dtype"
             ? "PyTorch 2.15 is silently wrong here: it reinterprets the bits of addends, which "
               "are not addends of the reinterpreted value"
             : "PyTorch 2.15 is silently wrong here: it writes the constant into every addend, so "
               "the sum is wrong";
}

Metas keep_metas(const OpSite& site) {
  TensorMeta out = site.meta(0);
  out.dtype = dtype_or(site.attributes, out.dtype);
  if (site.op.name == "view.dtype" && size_bytes(out.dtype) != size_bytes(site.meta(0).dtype))
    throw NotCovered("view.dtype: expected a dtype of the same size");
  return {out};
}

// Whether casting before the reduction gives the same as casting after it.
bool commutes(ReduceOp op, DType from, DType to) {
  if (from == to) return true;
  if (to == DType::Bool) return false;
  if (op == ReduceOp::Max || op == ReduceOp::Min) return true;
  return !is_floating(from) || is_floating(to);
}

Rows to_copy(const OpSite& site) {
  Rows rows;
  shard_equally(site, {}, 2, rows);
  DType from = site.meta(0).dtype, to = dtype_or(site.attributes, from);
  for (ReduceOp op : kPartials)
    if (commutes(op, from, to)) keep_partials({op}, 2, rows);
  return rows;
}

// zeros_like and the like read no values, so a partial gives a replica.
Rows like(const OpSite& site) {
  Rows rows;
  shard_equally(site, {}, 2, rows);
  for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Avg, ReduceOp::Min, ReduceOp::Max, ReduceOp::Product,
                      ReduceOp::Band, ReduceOp::Bor, ReduceOp::Bxor})
    rows.push_back({Mark::replicate(), Mark::partial(op)});
  return rows;
}

Shape wanted_size(const OpSite& site) {
  Shape out;
  std::vector<std::int64_t> sizes = site.attributes.integers("size");
  if (sizes.size() > to_index(kMaxDims))
    throw NotCovered(fmt::format("attr size: expected at most {} dims", kMaxDims));
  for (std::int64_t size : sizes) {
    if (size < 0) throw InputError(fmt::format("attr size: expected sizes, found {}", size));
    out.push_back(size);
  }
  return out;
}

Rows make_new(const OpSite& site) {
  bool same = wanted_size(site) == site.shape(0);
  bool empty = site.op.name.starts_with("new_empty");
  Rows rows;
  for (int d = 0; d < site.shape(0).size(); ++d)
    rows.push_back({same ? Mark::shard(d) : Mark::replicate(), Mark::shard(d)});
  for (ReduceOp op : kPartials)
    rows.push_back({same && empty ? Mark::partial(op) : Mark::replicate(), Mark::partial(op)});
  return rows;
}

Metas new_metas(const OpSite& site) {
  return {TensorMeta{wanted_size(site), dtype_or(site.attributes, site.meta(0).dtype)}};
}

// Random numbers in place, and dropout with its mask: each rank produces its own part.
Rows random(const OpSite& site) {
  Rows rows;
  shard_equally(site, {}, static_cast<int>(site.outputs.size()) + 1, rows);
  return rows;
}

Metas random_metas(const OpSite& site) {
  Metas out{site.meta(0)};
  if (site.op.name.starts_with("native_dropout"))
    out.emplace_back(TensorMeta{site.shape(0), DType::Bool});
  return out;
}

// Draws along the last dim.
Rows multinomial(const OpSite& site) {
  Rows rows;
  for (int d = 0; d + 1 < site.shape(0).size(); ++d)
    rows.push_back({Mark::shard(d), Mark::shard(d)});
  return rows;
}

Metas multinomial_metas(const OpSite& site) {
  TensorMeta out{site.shape(0), DType::I64};
  if (out.shape.size() == 0) throw InputError("multinomial: expected weights of 1 or 2 dims");
  out.shape[out.shape.size() - 1] = site.attributes.integer("num_samples");
  return {out};
}

constexpr Rule kMakingRules[]{
    {"keep", keep, keep_metas, "value dtype", true, nullptr, keep_rows_of_torch, nullptr,
     keep_fault},
    {"to_copy", to_copy, keep_metas, "dtype", true},
    {"like", like, keep_metas, "dtype", true},
    {"new", make_new, new_metas, "size dtype", true},
    {"multinomial", multinomial, multinomial_metas, "num_samples"},
    {"random", random, random_metas, "", true},
};

}  // namespace

std::span<const Rule> making_rules() { return kMakingRules; }

}  // namespace reshard
