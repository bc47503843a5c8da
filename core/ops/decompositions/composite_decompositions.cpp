// SPDX-License-Identifier: BSD-3-Clause
// Operators that PyTorch decomposes above dispatch, in steps that depend on shapes.
#include <algorithm>

#include <fmt/core.h>

#include "core/base/integers.h"
#include "core/ops/decompositions/steps.h"

namespace reshard {
namespace {

// f16 and bf16 are computed in f32.
void rms_norm(Steps& s) {
  TensorMeta meta = s.meta(s.in(0));
  bool is_half = meta.dtype != DType::F32 && meta.dtype != DType::F64;
  std::vector<std::int64_t> dims;
  for (std::size_t d = s.attributes().integers("normalized_shape").size(); d > 0; --d)
    dims.push_back(meta.shape.size() - static_cast<std::int64_t>(d));
  double least = meta.dtype == DType::F64 ? 0x1p-52 : 0x1p-23;
  StepTensor x = is_half ? s("_to_copy", {s.in(0)}, {{"dtype", OpValue("f32")}}) : s.in(0);
  StepTensor square = s("pow.Tensor_Scalar", {x}, {{"exponent", integer(2)}});
  StepTensor mean = s("mean.dim", {square}, {{"dim", list(dims)}, {"keepdim", OpValue(true)}});
  StepTensor moved =
      s("add.Scalar", {mean}, {{"other", OpValue(s.attributes().number("eps", least))}});
  StepTensor out = s("mul.Tensor", {x, s("rsqrt", {moved})});
  if (s.in(1) != kNoTensor) out = s("mul.Tensor", {out, s.in(1)});
  if (is_half) out = s("_to_copy", {out}, {{"dtype", OpValue(std::string(text(meta.dtype)))}});
  s.give(out);
}

// Without `train` nothing is dropped.
void dropout(Steps& s) {
  if (s.attributes().boolean("train", false))
    throw NotCovered("dropout: only native_dropout returns the mask of dropped elements");
  s.give(s("alias", {s.in(0)}));
}

std::int64_t dim_of(const Steps& s, std::int64_t absent) {
  std::int64_t dims = s.shape(s.in(0)).size(), dim = s.attributes().integer("dim", absent);
  if (dim < -dims || dim >= dims) s.refuse("attr dim: out of range");
  return dim < 0 ? dim + dims : dim;
}

constexpr std::int64_t kMostDifferences = 100;  // each takes three steps

void diff(Steps& s) {
  std::int64_t dim = dim_of(s, -1), times = s.attributes().integer("n", 1);
  StepTensor out = s.in(0);
  if (times < 0 || times >= std::max<std::int64_t>(s.shape(out)[static_cast<int>(dim)], 1))
    s.refuse("attr n: expected less than the length of the dim");
  if (times > kMostDifferences)
    throw NotCovered(
        fmt::format("diff: expected at most {} differences, found {}", kMostDifferences, times));
  auto part = [&](std::int64_t start, std::int64_t end) {
    return s("slice.Tensor", {out},
             {{"dim", integer(dim)}, {"start", integer(start)}, {"end", integer(end)}});
  };
  for (; times > 0; --times) {
    std::int64_t length = s.shape(out)[static_cast<int>(dim)];
    StepTensor before = part(0, length - 1);
    out = s("sub.Tensor", {part(1, length), before});
  }
  s.give(out);
}

void repeat_interleave(Steps& s) {
  StepTensor x = s.in(0);
  std::int64_t times = s.attributes().integer("repeats");
  if (times < 0) s.refuse("attr repeats: expected 0 or more");
  // Without a dim the tensor is flattened; its cuts then become strided, which no row expresses.
  Shape shape = s.shape(x);
  if (!s.attributes().has("dim") && shape.size() != 1)
    throw NotCovered("repeat_interleave: expected a dim");
  std::int64_t dim = dim_of(s, 0);
  std::vector<std::int64_t> apart(shape.begin(), shape.end()), joined = apart;
  apart.insert(apart.begin() + dim + 1, times);
  std::optional<std::int64_t> length = checked_product(joined[to_index(dim)], times);
  if (!length) s.refuse("attr repeats: expected at most 2^62 elements of the dim, found more");
  joined[to_index(dim)] = *length;
  StepTensor wide = s("unsqueeze", {x}, {{"dim", integer(dim + 1)}});
  StepTensor all = s("clone", {s("expand", {wide}, {{"size", list(apart)}})});
  s.give(s("view", {all}, {{"size", list(joined)}}));
}

void adaptive_avg_pool(Steps& s) {
  std::vector<std::int64_t> size = s.attributes().integers("output_size"), dims;
  bool is_2d = s.is_called("adaptive_avg_pool2d");
  for (std::int64_t d = 1; d <= (is_2d ? 2 : 3); ++d) dims.push_back(-d);
  if (std::all_of(size.begin(), size.end(), [](std::int64_t each) { return each == 1; }))
    return s.give(s("mean.dim", {s.in(0)}, {{"dim", list(dims)}, {"keepdim", OpValue(true)}}));
  s.give(s(is_2d ? "_adaptive_avg_pool2d" : "_adaptive_avg_pool3d", {s.in(0)},
           {{"output_size", list(size)}}));
}

constexpr Decomposition kCompositeDecompositions[]{
    {"rms_norm", rms_norm},
    {"dropout", dropout},
    {"diff", diff},
    {"repeat_interleave.self_int", repeat_interleave},
    {"adaptive_avg_pool2d", adaptive_avg_pool},
    {"adaptive_avg_pool3d", adaptive_avg_pool},
};

}  // namespace

std::span<const Decomposition> composite_decompositions() { return kCompositeDecompositions; }

}  // namespace reshard
