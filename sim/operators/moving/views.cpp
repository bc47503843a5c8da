// SPDX-License-Identifier: BSD-3-Clause
// Views: the same elements in another shape or dtype, or with dims in another order; and repeated
// tensors.
#include <fmt/core.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <bit>

#include "sim/operators/float8.h"
#include "sim/operators/moving/shapes.h"
#include "sim/operators/pointwise/pointwise.h"
#include "sim/operators/rearranged.h"

namespace reshard::sim {
namespace {

ArrayResults view(const LocalCall& call) {
  const Array& in = call.tensor(0);
  const char* name = call.attributes.has("shape") ? "shape" : "size";
  return results(reshaped(in, inferred_shape(call, call.attributes.integers(name), in.count())));
}

// The bits of an element, in the low bits of the result.
std::uint64_t bits_of(double value, std::int64_t integer, DType dtype) {
  switch (dtype) {
    case DType::F64:
      return std::bit_cast<std::uint64_t>(value);
    case DType::F32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DType::F16:
      return std::bit_cast<std::uint16_t>(Eigen::half(static_cast<float>(value)));
    case DType::BF16:
      return std::bit_cast<std::uint16_t>(Eigen::bfloat16(static_cast<float>(value)));
    case DType::F8E4M3:
      return std::bit_cast<std::uint8_t>(Float8<3>(value));
    case DType::F8E5M2:
      return std::bit_cast<std::uint8_t>(Float8<2>(value));
    default:
      return static_cast<std::uint64_t>(integer);
  }
}

double real_of(std::uint64_t bits, DType dtype) {
  auto low = static_cast<std::uint16_t>(bits);
  switch (dtype) {
    case DType::F64:
      return std::bit_cast<double>(bits);
    case DType::F32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case DType::F16:
      return static_cast<float>(std::bit_cast<Eigen::half>(low));
    case DType::BF16:
      return static_cast<float>(std::bit_cast<Eigen::bfloat16>(low));
    case DType::F8E4M3:
      return static_cast<double>(std::bit_cast<Float8<3>>(static_cast<std::uint8_t>(bits)));
    default:
      return static_cast<double>(std::bit_cast<Float8<2>>(static_cast<std::uint8_t>(bits)));
  }
}

ArrayResults view_dtype(const LocalCall& call) {
  const Array& in = call.tensor(0);
  DType dtype = call.dtype_or(in.dtype);
  if (dtype == in.dtype) return results(in);
  call.expect(size_bytes(dtype) == size_bytes(in.dtype), "expected a dtype of the same size");
  std::vector<double> reals = values<double>(in);
  std::vector<std::int64_t> integers = values<std::int64_t>(in);
  for (std::size_t i = 0; i < reals.size(); ++i) {
    std::uint64_t bits = bits_of(reals[i], integers[i], in.dtype);
    if (is_real(dtype)) reals[i] = real_of(bits, dtype);
    integers[i] = static_cast<std::int64_t>(bits);
  }
  return results(is_real(dtype) ? Array::of(dtype, in.shape, reals)
                                : Array::of(dtype, in.shape, std::move(integers)));
}

ArrayResults view_as(const LocalCall& call) {
  call.expect(call.tensor(0).count() == call.tensor(1).count(),
              "expected tensors of one number of elements");
  return results(reshaped(call.tensor(0), call.tensor(1).shape));
}

ArrayResults permuted(const Array& in, const DimVector& dims) {
  DimVector strides = dense_strides(in.shape);
  return results(viewed(in, picked(in.shape, dims), picked(strides, dims)));
}

ArrayResults permute(const LocalCall& call) {
  const Array& in = call.tensor(0);
  DimVector dims;
  for (std::int64_t dim : call.attributes.integers("dims")) {
    call.expect(dims.size() < in.shape.size(), "expected one dim for each of the tensor's");
    dims.push_back(call.dim_of(dim, in.shape.size()));
  }
  for (int d = 0; d < in.shape.size(); ++d)
    call.expect(std::find(dims.begin(), dims.end(), d) != dims.end(), "expected every dim once");
  return permuted(in, dims);
}

ArrayResults swapped(const Array& in, int a, int b) {
  DimVector dims;
  for (int d = 0; d < in.shape.size(); ++d) dims.push_back(d == a ? b : d == b ? a : d);
  return permuted(in, dims);
}

ArrayResults transpose(const LocalCall& call) {
  const Array& in = call.tensor(0);
  return swapped(in, call.dim("dim0", 0, in.shape.size()), call.dim("dim1", 1, in.shape.size()));
}

ArrayResults t(const LocalCall& call) {
  const Array& in = call.tensor(0);
  call.expect(in.shape.size() <= 2, "expected a tensor of 2 dims at most");
  return in.shape.size() < 2 ? results(in) : swapped(in, 0, 1);
}

ArrayResults expand(const LocalCall& call) {
  const Array& in = call.tensor(0);
  Shape size = shape_of(call, call.attributes.integers("size"));
  int first = size.size() - in.shape.size();
  call.expect(first >= 0, "expected a size of as many dims as the tensor has, or more");
  for (int d = 0; d < size.size(); ++d)
    if (size[d] == -1) {
      call.expect(d >= first, "expected a size for every new dim");
      size[d] = in.shape[d - first];
    }
  return results(broadcast_to(call, in, size));
}

ArrayResults expand_as(const LocalCall& call) {
  return results(broadcast_to(call, call.tensor(0), call.tensor(1).shape));
}

ArrayResults squeeze(const LocalCall& call) {
  const Array& in = call.tensor(0);
  auto dims = call.attributes.optional_integers("dim");
  std::vector<bool> drops(to_index(std::max(in.shape.size(), 1)), !dims);
  if (dims)
    for (std::int64_t dim : *dims) drops[to_index(call.dim_of(dim, in.shape.size()))] = true;
  Shape shape;
  for (int d = 0; d < in.shape.size(); ++d)
    if (in.shape[d] != 1 || !drops[to_index(d)]) shape.push_back(in.shape[d]);
  return results(reshaped(in, shape));
}

ArrayResults unsqueeze(const LocalCall& call) {
  const Array& in = call.tensor(0);
  int at = call.dim_of(call.attributes.integer("dim"), in.shape.size() + 1);
  return results(reshaped(in, with_dim(call, in.shape, at, 1)));
}

// Repeats the tensor along each dim, where dims that it lacks are added in front.
ArrayResults repeated(const LocalCall& call, const Array& in, std::vector<std::int64_t> times) {
  int rank = in.shape.size();
  call.expect(std::ssize(times) >= rank, "expected a number of repeats for every dim");
  std::size_t more = times.size() - to_index(rank);
  Shape shape, own = shape_of(call, times);
  for (int d = 0; d < own.size(); ++d) {
    std::int64_t extent = d < static_cast<int>(more) ? 1 : in.shape[d - static_cast<int>(more)];
    call.expect(own[d] >= 0 && own[d] <= (1 << 28), "expected numbers of repeats from 0 to 2^28");
    shape.push_back(own[d] * extent);
    own[d] = extent;
  }
  DimVector strides = dense_strides(own);
  std::vector<std::int64_t> offsets{0};
  Array out = Array::zeros(in.dtype, shape);  // throws if it is too large
  if (out.count() == 0) return results(std::move(out));
  for (int d = 0; d < shape.size(); ++d) {
    std::vector<std::int64_t> next;
    next.reserve(offsets.size() * to_index(shape[d]));
    for (std::int64_t offset : offsets)
      for (std::int64_t i = 0; i < shape[d]; ++i) next.push_back(offset + i % own[d] * strides[d]);
    offsets = std::move(next);
  }
  visit_both(in, out, [&](const auto& from, auto& to) {
    for (std::size_t i = 0; i < offsets.size(); ++i) to[i] = from[to_index(offsets[i])];
  });
  return results(std::move(out));
}

ArrayResults repeat(const LocalCall& call) {
  return repeated(call, call.tensor(0), call.attributes.integers("repeats"));
}

constexpr std::array kViewsRows{
    OperatorRow{"view", view},
    OperatorRow{"_unsafe_view", view},
    OperatorRow{"reshape", view},
    OperatorRow{"_reshape_alias", view},
    OperatorRow{"view_as", view_as},
    OperatorRow{"reshape_as", view_as},
    OperatorRow{"view.dtype", view_dtype},
    OperatorRow{"permute", permute},
    OperatorRow{"transpose", transpose},
    OperatorRow{"transpose_", transpose},
    OperatorRow{"swapaxes", transpose},
    OperatorRow{"t", t},
    OperatorRow{"t_", t},
    OperatorRow{"expand", expand},
    OperatorRow{"expand_as", expand_as},
    OperatorRow{"squeeze", squeeze},
    OperatorRow{"squeeze_", squeeze},
    OperatorRow{"unsqueeze", unsqueeze},
    OperatorRow{"unsqueeze_", unsqueeze},
    OperatorRow{"repeat", repeat},
};

}  // namespace

std::span<const OperatorRow> view_rows() { return kViewsRows; }

}  // namespace reshard::sim
