// SPDX-License-Identifier: BSD-3-Clause
// Reductions, norms and products.
#include <fmt/format.h>

#include "core/ops/decompositions/steps.h"

namespace reshard {
namespace {

OpValue integer(std::int64_t value) { return OpValue(value); }

OpValue attribute(const Steps& s, std::string_view name, OpValue absent = {}) {
  const OpValue* value = s.attributes().find(name);
  return value ? *value : absent;
}

void count_nonzero(Steps& s) {
  StepTensor is_there = s("ne.Scalar", {s.in(0)}, {{"other", integer(0)}});
  s.give(s("sum.dim_IntList", {is_there}, {{"dim", attribute(s, "dim")}}));
}

void aminmax(Steps& s) {
  for (const char* name : {"amin", "amax"}) {
    if (s.attributes().has("dim")) {
      s.give(
          s(name, {s.in(0)},
            {{"dim", attribute(s, "dim")}, {"keepdim", attribute(s, "keepdim", OpValue(false))}}));
    } else {
      s.give(s(name, {s.in(0)}, {{"keepdim", attribute(s, "keepdim", OpValue(false))}}));
    }
  }
}

void norm(Steps& s) {
  OpValue order = attribute(s, "p");
  s.give(s("linalg_vector_norm", {s.in(0)},
           {{"ord", order.is_null() ? integer(2) : order},
            {"dim", attribute(s, "dim")},
            {"keepdim", attribute(s, "keepdim", OpValue(false))},
            {"dtype", attribute(s, "dtype")}}));
}

void std_mean(Steps& s) {
  StepTensor both = s.several("var_mean.correction", {s.in(0)},
                              {{"dim", attribute(s, "dim")},
                               {"correction", attribute(s, "correction")},
                               {"keepdim", attribute(s, "keepdim", OpValue(false))}});
  s.give(s("sqrt", {both}));
  s.give(both + 1);
}

void dist(Steps& s) {
  StepTensor difference = s("sub.Tensor", {s.in(0), s.in(1)});
  s.give(s("norm.Scalar", {difference}, {{"p", attribute(s, "p", integer(2))}}));
}

void trace(Steps& s) {
  if (s.shape(s.in(0)).size() != 2) s.refuse("expected a matrix");
  s.give(s("sum", {s("diagonal_copy", {s.in(0)})}));
}

void vdot(Steps& s) { s.give(s("dot", {s.in(0), s.in(1)})); }

OpValue sizes(std::initializer_list<std::int64_t> list) {
  return OpValue(std::vector<std::int64_t>(list));
}

StepTensor scaled(Steps& s, StepTensor tensor, const char* by) {
  return s("mul.Tensor", {tensor}, {{"other", attribute(s, by, integer(1))}});
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

// PyTorch adds what is not yet a sum of all ranks to nothing else.
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

constexpr Decomposition kAll[]{
    {"count_nonzero", count_nonzero},
    {"count_nonzero.dim_IntList", count_nonzero},
    {"aminmax", aminmax},
    {"norm.ScalarOpt_dim", norm},
    {"norm.ScalarOpt_dim_dtype", norm},
    {"norm.ScalarOpt_dtype", norm},
    {"std_mean.correction", std_mean},
    {"dist", dist},
    {"trace", trace},
    {"vdot", vdot},
    {"addr", addr},
    {"addmv", addmv},
    {"_addmm_activation", addmm_activation},
};

}  // namespace

std::span<const Decomposition> reduction_decompositions() { return kAll; }

}  // namespace reshard
