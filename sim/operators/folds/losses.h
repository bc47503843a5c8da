// SPDX-License-Identifier: BSD-3-Clause
// Losses of elements, kept, averaged or summed; losses of pairs of elements and their derivatives.
#pragma once

#include <vector>

#include "core/ops/attributes.h"
#include "sim/operators/pointwise/pointwise.h"

namespace reshard::sim {

// The mean divides by the total weight.
inline Array reduced_loss(const std::vector<double>& each, Reduction kind, double weight,
                          DType dtype, const Shape& shape) {
  if (kind == Reduction::None) return Array::of(dtype, shape, each);
  double total = 0;
  for (double x : each) total += x;
  return Array::of(dtype, Shape{},
                   std::vector<double>{kind == Reduction::Mean ? total / weight : total});
}

// loss(x, y) of the elements of tensors 0 and 1.
template <class Loss>
ArrayResults loss_of_pair(const LocalCall& call, Loss&& loss) {
  const Array &x = call.tensor(0), &y = call.tensor(1);
  Shape shape = broadcast(call, x.shape, y.shape);
  std::vector<double> a = values<double>(broadcast_to(call, x, shape)),
                      b = values<double>(broadcast_to(call, y, shape));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = loss(a[i], b[i]);
  return results(reduced_loss(a, loss_reduction(call.attributes), static_cast<double>(a.size()),
                              x.dtype, shape));
}

// slope(x, y) of the elements of tensors 1 and 2, times the gradient in tensor 0.
template <class Slope>
ArrayResults slope_of_pair(const LocalCall& call, Slope&& slope) {
  const Array &grad = call.tensor(0), &x = call.tensor(1), &y = call.tensor(2);
  Shape shape = broadcast(call, x.shape, y.shape);
  std::vector<double> g = values<double>(broadcast_to(call, grad, shape)),
                      a = values<double>(broadcast_to(call, x, shape)),
                      b = values<double>(broadcast_to(call, y, shape));
  bool is_mean = loss_reduction(call.attributes) == Reduction::Mean;
  double by = is_mean ? static_cast<double>(a.size()) : 1;
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = g[i] * slope(a[i], b[i]) / by;
  return results(Array::of(x.dtype, shape, a));
}

}  // namespace reshard::sim
