// SPDX-License-Identifier: BSD-3-Clause
// Products of matrices, batched or not, with an optional addend; and products of vectors.
#include <fmt/core.h>

#include <array>

#include "sim/operators/folds/slices.h"
#include "sim/operators/pointwise/arithmetic.h"
#include "sim/operators/pointwise/pointwise.h"
#include "sim/operators/products/product.h"
#include "sim/operators/rearranged.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

// A shape as batch dims, rows and columns.
struct Matrices {
  Shape batch;
  std::int64_t rows, columns;
};
Matrices matrices(const Shape& shape) {
  int rank = shape.size();
  Matrices out{{}, shape[rank - 2], shape[rank - 1]};
  for (int d = 0; d + 2 < rank; ++d) out.batch.push_back(shape[d]);
  return out;
}

// alpha * a @ b + beta * added. a and b must have at least 2 dims; batches broadcast, and so does
// `added`.
template <class T>
Array product(const LocalCall& call, DType dtype, const Array& a, const Array& b, T alpha = 1,
              const Array* added = nullptr, T beta = 1) {
  Matrices left = matrices(a.shape), right = matrices(b.shape);
  if (left.columns != right.rows)
    call.refuse(fmt::format("expected matrices that fit, found [{}] and [{}]", text(a.shape),
                            text(b.shape)));
  Shape batch = broadcast(call, left.batch, right.batch), shape = batch;
  auto batched = [&](const Array& array, const Matrices& of) {
    Shape to = batch;
    to.push_back(of.rows), to.push_back(of.columns);
    return values<T>(to == array.shape ? array : broadcast_to(call, array, to));
  };
  std::vector<T> x = batched(a, left), y = batched(b, right);
  shape.push_back(left.rows), shape.push_back(right.columns);
  std::vector<T> out(to_index(computable_count(shape)), 0);
  std::int64_t of_left = left.rows * left.columns, of_right = right.rows * right.columns,
               of_out = left.rows * right.columns;
  for (std::int64_t i = 0; i < element_count(batch); ++i)
    add_product(x.data() + i * of_left, y.data() + i * of_right, left.rows, left.columns,
                right.columns, out.data() + i * of_out);
  if (alpha != 1)
    for (T& value : out) value = times(alpha, value);
  if (added && beta != 0) {
    std::vector<T> more = values<T>(broadcast_to(call, *added, shape));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = plus(out[i], times(beta, more[i]));
  }
  return Array::of(dtype, shape, std::move(out));
}

Array any_product(const LocalCall& call, const Array& a, const Array& b,
                  const Array* added = nullptr) {
  call.expect(a.dtype == b.dtype && (!added || added->dtype == a.dtype),
              "expected tensors of one dtype");
  return visit_computing(a.dtype, [&](auto t) {
    using T = decltype(t);
    T alpha = number_as<T>(call.number("alpha", 1)), beta = number_as<T>(call.number("beta", 1));
    return product<T>(call, a.dtype, a, b, alpha, added, beta);
  });
}

template <int kRank, bool kAdds>
ArrayResults plain(const LocalCall& call) {
  const Array &a = call.tensor(kAdds), &b = call.tensor(kAdds + 1);
  call.expect(a.shape.size() == kRank && b.shape.size() == kRank,
              kRank == 2 ? "expected tensors of 2 dims" : "expected tensors of 3 dims");
  if constexpr (kRank == 3) call.expect(a.shape[0] == b.shape[0], "expected batches of one size");
  return results(any_product(call, a, b, kAdds ? &call.tensor(0) : nullptr));
}

Array as_row(const Array& a) { return a.shape.size() == 1 ? reshaped(a, {1, a.shape[0]}) : a; }
Array as_column(const Array& a) { return a.shape.size() == 1 ? reshaped(a, {a.shape[0], 1}) : a; }

// A vector counts as a row on the left and as a column on the right; the result lacks that dim.
Array matmul_of(const LocalCall& call, const Array& a, const Array& b) {
  call.expect(a.shape.size() > 0 && b.shape.size() > 0, "expected tensors of 1 dim at least");
  Array out = any_product(call, as_row(a), as_column(b));
  Shape shape;
  for (int d = 0; d < out.shape.size(); ++d) {
    bool is_row = d == out.shape.size() - 2 && a.shape.size() == 1;
    bool is_column = d == out.shape.size() - 1 && b.shape.size() == 1;
    if (!is_row && !is_column) shape.push_back(out.shape[d]);
  }
  return reshaped(out, shape);
}

ArrayResults matmul(const LocalCall& call) {
  return results(matmul_of(call, call.tensor(0), call.tensor(1)));
}

template <int kLeft, int kRight>
ArrayResults of_ranks(const LocalCall& call) {
  const Array &a = call.tensor(0), &b = call.tensor(1);
  call.expect(a.shape.size() == kLeft && b.shape.size() == kRight,
              kLeft == 2 ? "expected a matrix and a vector" : "expected two vectors");
  return results(matmul_of(call, a, b));
}

ArrayResults outer(const LocalCall& call) {
  const Array &a = call.tensor(0), &b = call.tensor(1);
  call.expect(a.shape.size() == 1 && b.shape.size() == 1, "expected two vectors");
  return results(any_product(call, reshaped(a, {a.shape[0], 1}), as_row(b)));
}

ArrayResults linear(const LocalCall& call) {
  const Array &in = call.tensor(0), &weight = call.tensor(1);
  int rank = weight.shape.size();
  call.expect(rank == 1 || rank == 2, "expected a weight of 1 or 2 dims");
  if (rank == 1) return results(matmul_of(call, in, weight));
  call.expect(in.shape.size() > 0, "expected an input of 1 dim at least");
  Shape shape{weight.shape[1], weight.shape[0]};
  Array transposed = viewed(weight, shape, DimVector{1, shape[0]});
  const Array* bias = call.optional_tensor(2);
  // Flattened to one matrix, so that batches need no copies of the weight.
  Shape flat{1, in.shape[in.shape.size() - 1]}, out_shape = in.shape;
  for (int d = 0; d + 1 < in.shape.size(); ++d) flat[0] *= in.shape[d];
  out_shape[in.shape.size() - 1] = shape[1];
  return results(reshaped(any_product(call, reshaped(in, flat), transposed, bias), out_shape));
}

ArrayResults addmv(const LocalCall& call) {
  const Array &a = call.tensor(1), &b = call.tensor(2);
  call.expect(a.shape.size() == 2 && b.shape.size() == 1, "expected a matrix and a vector");
  Array added = as_column(call.tensor(0));
  return results(reshaped(any_product(call, a, as_column(b), &added), {a.shape[0]}));
}

ArrayResults cross(const LocalCall& call) {
  const Array &a = call.tensor(0), &b = call.tensor(1);
  int dim = call.dim("dim", -1, a.shape.size());
  call.expect(a.shape == b.shape && a.shape.size() > 0 && a.shape[dim] == 3,
              "expected tensors of one shape, of 3 along the dim");
  Slices<double> x = slices<double>(a, slice_dim(a.shape, dim)),
                 y = slices<double>(b, slice_dim(b.shape, dim));
  for (std::int64_t i = 0; i < x.dims.count; ++i) {
    std::span<double> p = x.slice(i), q = y.slice(i);
    std::array<double, 3> made{p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2],
                               p[0] * q[1] - p[1] * q[0]};
    std::copy(made.begin(), made.end(), p.begin());
  }
  return results(unsliced(a.dtype, std::move(x)));
}

constexpr std::array kMatmulRows{
    OperatorRow{"mm", plain<2, false>},  OperatorRow{"addmm", plain<2, true>},
    OperatorRow{"bmm", plain<3, false>}, OperatorRow{"baddbmm", plain<3, true>},
    OperatorRow{"dot", of_ranks<1, 1>},  OperatorRow{"vdot", of_ranks<1, 1>},
    OperatorRow{"mv", of_ranks<2, 1>},   OperatorRow{"addmv", addmv},
    OperatorRow{"matmul", matmul},       OperatorRow{"outer", outer},
    OperatorRow{"linear", linear},       OperatorRow{"linalg_cross", cross},
};

}  // namespace

std::span<const OperatorRow> matmul_rows() { return kMatmulRows; }

}  // namespace reshard::sim
