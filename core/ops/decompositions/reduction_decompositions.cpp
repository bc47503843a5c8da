// SPDX-License-Identifier: BSD-3-Clause
// Reductions, norms and products.
#include <fmt/core.h>

#include "core/ops/decompositions/steps.h"

namespace reshard {
namespace {

OpValue attribute(const Steps& s, std::string_view name, OpValue absent = {}) {
  const OpValue* value = s.attributes().find(name);
  return value ? *value : absent;
}

void trace(Steps& s) {
  if (s.shape(s.in(0)).size() != 2) s.refuse("expected a matrix");
  s.give(s("sum", {s("diagonal_copy", {s.in(0)})}));
}

OpValue sizes(std::initializer_list<std::int64_t> list) {
  return OpValue(std::vector<std::int64_t>(list));
}

StepTensor scaled(Steps& s, StepTensor tensor, const char* by) {
  return s("mul.Tensor", {tensor}, {{"other", attribute(s, by, integer(1))}});
}

// v scaled to length g. The norms of f16 and bf16 are f32.
void weight_norm(Steps& s) {
  const TensorMeta& v = s.meta(s.in(0));
  std::int64_t kept = s.attributes().integer("dim", 0);
  std::vector<std::int64_t> dims;
  for (std::int64_t d = 0; d < v.shape.size(); ++d)
    if (d != kept) dims.push_back(d);
  StepTensor norm = s("linalg_vector_norm", {s.in(0)},
                      {{"ord", integer(2)},
                       {"dim", OpValue(dims)},
                       {"keepdim", OpValue(true)},
                       {"dtype", OpValue(v.dtype == DType::F64 ? "f64" : "f32")}});
  StepTensor own = v.dtype == s.meta(norm).dtype
                       ? norm
                       : s("_to_copy", {norm}, {{"dtype", OpValue(std::string(text(v.dtype)))}});
  s.give(s("mul.Tensor", {s.in(0), s("div.Tensor", {s.in(1), own})}));
  s.give(norm);
}

void addr(Steps& s) {
  Shape column = s.shape(s.in(1)), row = s.shape(s.in(2));
  if (column.size() != 1 || row.size() != 1) s.refuse("expected two vectors");
  bool adds = s.attributes().number("beta", 1) != 0;
  StepTensor before = kNoTensor;
  if (adds)
    before = scaled(s, s("expand", {s.in(0)}, {{"size", sizes({column[0], row[0]})}}), "beta");
  StepTensor upright = s("view", {s.in(1)}, {{"size", sizes({column[0], 1})}});
  StepTensor product = scaled(s, s("mul.Tensor", {upright, s.in(2)}), "alpha");
  s.give(adds ? s("add.Tensor", {before, product}) : product);
}

// PyTorch's add takes a product that is still a partial sum only with another partial sum.
void addmv(Steps& s) {
  StepTensor product = scaled(s, s("mv", {s.in(1), s.in(2)}), "alpha");
  if (s.attributes().number("beta", 1) == 0) return s.give(product);
  s.give(s("add.Tensor", {product, scaled(s, s.in(0), "beta")}));
}

void addmm_activation(Steps& s) {
  StepTensor product = scaled(s, s("mm", {s.in(1), s.in(2)}), "alpha");
  Shape shape = s.shape(product);
  StepTensor bias = s("expand", {s.in(0)}, {{"size", sizes({shape[0], shape[1]})}});
  StepTensor sum = s("add.Tensor", {product, scaled(s, bias, "beta")});
  s.give(s(s.attributes().boolean("use_gelu", false) ? "gelu" : "relu", {sum}));
}

constexpr Decomposition kReductionDecompositions[]{
    {"trace", trace}, {"_weight_norm_interface", weight_norm}, {"addr", addr},
    {"addmv", addmv}, {"_addmm_activation", addmm_activation},
};

}  // namespace

std::span<const Decomposition> reduction_decompositions() { return kReductionDecompositions; }

}  // namespace reshard
