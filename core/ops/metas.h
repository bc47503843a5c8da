// SPDX-License-Identifier: BSD-3-Clause
// Shapes and dtypes that operators have in common.
#pragma once

#include <optional>
#include <vector>

#include "core/ops/operator.h"

namespace reshard {

using Metas = std::vector<std::optional<TensorMeta>>;

// As NumPy and PyTorch broadcast. Throws InputError where they refuse.
Shape broadcast_shapes(const std::vector<const TensorMeta*>& tensors);
// Which dim of a tensor of `shape` dim `dim` of `common` is; -1 where it is broadcast.
int broadcast_dim(const Shape& common, const Shape& shape, int dim);

// PyTorch's promotion of the tensors' dtypes and of the scalars among `values`.
DType promote(const std::vector<const TensorMeta*>& tensors,
              const std::vector<const OpValue*>& values);
// The default floating dtype where `dtype` is of integers or bool.
DType as_floating(DType dtype);
// The attribute `dtype`, or of another name, where it is there. Throws NotCovered for a dtype that
// only PyTorch knows.
DType dtype_or(const OpAttributes& attributes, DType absent, std::string_view name = "dtype");

// Without the dims in `reduced`, or with them as 1.
Shape reduced_shape(const Shape& shape, const std::vector<int>& reduced, bool keep);
// Where dim `dim` of what is reduced goes.
int reduced_dim(int dim, const std::vector<int>& reduced, bool keep);
std::vector<int> all_dims(int dims);
bool contains(const std::vector<int>& dims, int dim);

// One more dim at the end. Throws InputError beyond kMaxDims.
void add_dim(Shape& shape, std::int64_t size);

// The attributes dim1 and dim2, of `dims` dims. Throws InputError where they are the same.
std::vector<int> diagonal_dims(const OpSite& site, std::int64_t dim1, std::int64_t dim2, int dims);

// The meta of argument 0, once per output.
Metas like_first(const OpSite& site);

// Rows that cut every dim of argument 0 but those of `but`, alike on `count` tensors.
void cut_alike(const OpSite& site, const std::vector<int>& but, int count, Rows& rows);
// Rows of partials on `count` tensors alike.
void keep_partials(std::initializer_list<ReduceOp> ops, int count, Rows& rows);
inline constexpr std::initializer_list<ReduceOp> kPartials{ReduceOp::Sum, ReduceOp::Avg,
                                                           ReduceOp::Min, ReduceOp::Max};

}  // namespace reshard
