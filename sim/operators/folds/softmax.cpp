// SPDX-License-Identifier: BSD-3-Clause
// Softmax, its logarithm and their derivatives.
#include <array>

#include "sim/operators/folds/slices.h"
#include "sim/operators/pointwise/arithmetic.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

void log_softmax_of(std::span<double> slice) {
  double high = -kInfinity, total = 0;
  for (double x : slice) high = larger(high, x);
  for (double x : slice) total += std::exp(x - high);
  double least = high + std::log(total);
  for (double& x : slice) x -= least;
}

void softmax_of(std::span<double> slice) {
  double high = -kInfinity, total = 0;
  for (double x : slice) high = larger(high, x);
  for (double& x : slice) total += x = std::exp(x - high);
  for (double& x : slice) x /= total;
}

// A slice that is masked entirely gives zeros.
void safe_softmax_of(std::span<double> slice) {
  bool is_masked = true;
  for (double x : slice) is_masked = is_masked && x == -kInfinity;
  if (!is_masked) return softmax_of(slice);
  for (double& x : slice) x = 0;
}

// The result's dtype follows attribute "dtype", or "half_to_float" for f16 and bf16.
template <void (*kFunction)(std::span<double>)>
ArrayResults softmax(const LocalCall& call) {
  const Array& in = call.tensor(0);
  DType dtype = call.dtype_or(in.dtype);
  if (call.attributes.boolean("half_to_float", false)) dtype = DType::F32;
  call.expect(is_real(dtype), "expected a floating tensor");
  Slices<double> of = slices<double>(in, slice_dim(in.shape, call.dim("dim", -1, in.shape.size())));
  for (std::int64_t i = 0; i < of.dims.count; ++i) kFunction(of.slice(i));
  return results(unsliced(dtype, std::move(of)));
}

// Arguments: gradient, output.
template <bool kOfLogarithm>
ArrayResults softmax_backward(const LocalCall& call) {
  const Array &grad = call.tensor(0), &output = call.tensor(1);
  call.expect(grad.shape == output.shape, "expected a gradient of the output's shape");
  SliceDims dims = slice_dim(grad.shape, call.dim("dim", -1, grad.shape.size()));
  Slices<double> g = slices<double>(grad, dims), y = slices<double>(output, dims);
  for (std::int64_t i = 0; i < dims.count; ++i) {
    std::span<double> to = g.slice(i), of = y.slice(i);
    double total = 0;
    for (std::size_t k = 0; k < to.size(); ++k) total += kOfLogarithm ? to[k] : to[k] * of[k];
    for (std::size_t k = 0; k < to.size(); ++k)
      to[k] = kOfLogarithm ? to[k] - std::exp(of[k]) * total : of[k] * (to[k] - total);
  }
  DType dtype = parse_dtype(call.attributes.text("input_dtype", text(grad.dtype)));
  return results(unsliced(dtype, std::move(g)));
}

constexpr std::array kSoftmaxRows{
    OperatorRow{"_softmax", softmax<softmax_of>},
    OperatorRow{"_log_softmax", softmax<log_softmax_of>},
    OperatorRow{"softmax", softmax<softmax_of>},
    OperatorRow{"log_softmax", softmax<log_softmax_of>},
    OperatorRow{"_safe_softmax", softmax<safe_softmax_of>},
    OperatorRow{"_softmax_backward_data", softmax_backward<false>},
    OperatorRow{"_log_softmax_backward_data", softmax_backward<true>},
};

}  // namespace

std::span<const OperatorRow> softmax_rows() { return kSoftmaxRows; }

}  // namespace reshard::sim
