// SPDX-License-Identifier: BSD-3-Clause
// Shapes, dtypes and rows that operators have in common.
#pragma once

#include <optional>
#include <vector>

#include "core/ops/operator.h"

namespace reshard {

using Metas = std::vector<std::optional<TensorMeta>>;

// Broadcasting as in NumPy and PyTorch. Throws InputError for shapes that do not broadcast.
Shape broadcast_shapes(const std::vector<const TensorMeta*>& tensors);
// The dim of a tensor of `shape` that is dim `dim` of `common`; -1 if it is broadcast.
int broadcast_dim(const Shape& common, const Shape& shape, int dim);

// PyTorch's type promotion of the tensors' dtypes and of the scalars among `values`.
DType promote(const std::vector<const TensorMeta*>& tensors,
              const std::vector<const OpValue*>& values);
// The default floating dtype if `dtype` is an integer or bool, else `dtype`.
DType as_floating(DType dtype);
// The attribute `dtype` (or `name`), if present. Throws NotCovered for a dtype that only PyTorch
// knows.
DType dtype_or(const OpAttributes& attributes, DType absent, std::string_view name = "dtype");

// `shape` without the dims in `reduced`, or with them as 1 if `keep`.
Shape reduced_shape(const Shape& shape, const std::vector<int>& reduced, bool keep);
// The dim of the result that dim `dim` of the reduced tensor becomes.
int reduced_dim(int dim, const std::vector<int>& reduced, bool keep);
std::vector<int> all_dims(int dims);
bool contains(const std::vector<int>& dims, int dim);

// Adds a dim at the end. Throws NotCovered beyond kMaxDims.
void add_dim(Shape& shape, std::int64_t size);

// The attributes dim1 and dim2 as dims of `dims`. Throws InputError if they are the same.
std::vector<int> diagonal_dims(const OpSite& site, std::int64_t dim1, std::int64_t dim2, int dims);

// The meta of argument 0, for the only output.
Metas like_first(const OpSite& site);

// Adds rows that cut each dim of argument 0, except those in `but`, the same way on `count`
// tensors.
void shard_equally(const OpSite& site, const std::vector<int>& but, int count, Rows& rows);
// Adds rows with the same partial on `count` tensors.
void keep_partials(std::initializer_list<ReduceOp> ops, int count, Rows& rows);
inline constexpr std::initializer_list<ReduceOp> kPartials{ReduceOp::Sum, ReduceOp::Avg,
                                                           ReduceOp::Min, ReduceOp::Max};

}  // namespace reshard
