// SPDX-License-Identifier: BSD-3-Clause
// Broadcasting, type promotion, and shapes and rows shared by several rules.
#include "core/ops/metas.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "core/base/errors.h"

namespace reshard {
namespace {

// bool < integers < floating < complex.
int category(DType dtype) {
  if (dtype == DType::Bool) return 0;
  if (is_integer(dtype)) return 1;
  return is_floating(dtype) ? 2 : 3;
}

// The smallest dtype that holds both, within one category.
DType wider(DType a, DType b) {
  if (a == b) return a;
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (category(a) == 2) {
    bool halves = (a == DType::F16 && b == DType::BF16) || (a == DType::BF16 && b == DType::F16);
    if (halves) return DType::F32;
    return size_bytes(a) >= size_bytes(b) ? a : b;
  }
  if (a == DType::U8 || b == DType::U8) {
    DType other = a == DType::U8 ? b : a;
    return other == DType::I8 ? DType::I16 : other;
  }
  return size_bytes(a) >= size_bytes(b) ? a : b;
}

void widen(std::optional<DType>& so_far, DType with) {
  so_far = so_far ? wider(*so_far, with) : with;
}

// The dtype of a scalar, where no tensor of its category decides.
std::optional<DType> dtype_of(const OpValue& value) {
  switch (value.kind) {
    case OpValue::Kind::Boolean:
      return DType::Bool;
    case OpValue::Kind::Integer:
      return DType::I64;
    case OpValue::Kind::Number:
    case OpValue::Kind::Text:
      return DType::F32;
    default:
      return std::nullopt;
  }
}

}  // namespace

Shape broadcast_shapes(const std::vector<const TensorMeta*>& tensors) {
  int dims = 0;
  for (const TensorMeta* tensor : tensors) dims = std::max(dims, tensor->shape.size());
  Shape out(dims, 1);
  for (const TensorMeta* tensor : tensors)
    for (int d = 0; d < tensor->shape.size(); ++d) {
      std::int64_t size = tensor->shape[d];
      std::int64_t& common = out[dims - tensor->shape.size() + d];
      if (size != 1 && common != 1 && size != common)
        throw InputError(fmt::format("shapes [{}] and [{}] do not broadcast: dim {} is {} and {}",
                                     text(tensors.front()->shape), text(tensor->shape), d, common,
                                     size));
      if (common == 1) common = size;
    }
  return out;
}

int broadcast_dim(const Shape& common, const Shape& shape, int dim) {
  int at = dim - (common.size() - shape.size());
  return at >= 0 && shape[at] == common[dim] ? at : -1;
}

DType promote(const std::vector<const TensorMeta*>& tensors,
              const std::vector<const OpValue*>& values) {
  std::optional<DType> with_dims, without, scalars;
  for (const TensorMeta* tensor : tensors)
    widen(tensor->shape.size() > 0 ? with_dims : without, tensor->dtype);
  for (const OpValue* value : values)
    if (std::optional<DType> dtype = value ? dtype_of(*value) : std::nullopt)
      widen(scalars, *dtype);
  std::optional<DType> out = with_dims;
  for (const std::optional<DType>& next : {without, scalars})
    if (next && (!out || category(*next) > category(*out))) widen(out, *next);
  return out.value_or(DType::F32);
}

DType as_floating(DType dtype) { return category(dtype) < 2 ? DType::F32 : dtype; }

DType dtype_or(const OpAttributes& attributes, DType absent, std::string_view name) {
  if (!attributes.has(name)) return absent;
  std::string given = attributes.text(name, "");
  try {
    return parse_dtype(given, fmt::format("attr {}", name));
  } catch (const InputError& error) {
    throw NotCovered(error.what());
  }
}

Shape reduced_shape(const Shape& shape, const std::vector<int>& reduced, bool keep) {
  Shape out;
  for (int d = 0; d < shape.size(); ++d) {
    if (!contains(reduced, d)) {
      out.push_back(shape[d]);
    } else if (keep) {
      out.push_back(1);
    }
  }
  return out;
}

int reduced_dim(int dim, const std::vector<int>& reduced, bool keep) {
  if (keep) return dim;
  return dim - static_cast<int>(std::count_if(reduced.begin(), reduced.end(),
                                              [&](int other) { return other < dim; }));
}

std::vector<int> all_dims(int dims) {
  std::vector<int> out(to_index(dims));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

bool contains(const std::vector<int>& dims, int dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

void add_dim(Shape& shape, std::int64_t size) {
  if (shape.size() == kMaxDims)
    throw NotCovered(fmt::format("expected at most {} dims, found more", kMaxDims));
  shape.push_back(size);
}

std::vector<int> diagonal_dims(const OpSite& site, std::int64_t dim1, std::int64_t dim2, int dims) {
  std::vector<int> out{site.dim("dim1", dim1, dims), site.dim("dim2", dim2, dims)};
  if (out[0] == out[1]) throw InputError("attr dim2: expected another dim than dim1");
  return out;
}

Metas like_first(const OpSite& site) { return {site.meta(0)}; }

void shard_equally(const OpSite& site, const std::vector<int>& but, int count, Rows& rows) {
  for (int d = 0; d < site.shape(0).size(); ++d)
    if (!contains(but, d)) rows.emplace_back(to_index(count), Mark::shard(d));
}

void keep_partials(std::initializer_list<ReduceOp> ops, int count, Rows& rows) {
  for (ReduceOp op : ops) rows.emplace_back(to_index(count), Mark::partial(op));
}

}  // namespace reshard
