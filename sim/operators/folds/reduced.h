// SPDX-License-Identifier: BSD-3-Clause
// A value for each slice of a call's tensor.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sim/operators/folds/slices.h"

namespace reshard::sim {

// Applies `function` to each slice along the dims of "dim", as "keepdim" states.
template <class T, class Function>
Array reduced(const LocalCall& call, const Array& in, DType dtype, Function function) {
  Slices<T> of = slices<T>(in, slice_dims(call, in.shape));
  using Result = decltype(function(of.slice(0)));
  std::vector<Result> out(to_index(of.dims.count));
  for (std::int64_t i = 0; i < of.dims.count; ++i) out[to_index(i)] = function(of.slice(i));
  return Array::of(dtype, of.dims.reduced(call.attributes.boolean("keepdim", false)),
                   std::move(out));
}

// "dtype", or that of the tensor. Throws InputError if it is not floating.
inline DType floating_dtype(const LocalCall& call) {
  DType dtype = call.dtype_or(call.tensor(0).dtype);
  call.expect(is_real(dtype), "expected a floating tensor");
  return dtype;
}

inline double sum_of(std::span<const double> slice) {
  double total = 0;
  for (double x : slice) total += x;
  return total;
}

}  // namespace reshard::sim
