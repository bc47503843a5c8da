// SPDX-License-Identifier: BSD-3-Clause
// Batch norm: shifts and scales every channel (dim 1) over all other dims, in training by its own
// statistics, otherwise by the given ones. Does not return updated running statistics.
#include <array>
#include <cmath>

#include "sim/operators/folds/slices.h"

namespace reshard::sim {
namespace {

SliceDims by_channel(const LocalCall& call, const Array& in) {
  call.expect(in.shape.size() >= 2 && is_real(in.dtype), "expected floats of 2 dims at least");
  std::vector<bool> in_slice(to_index(in.shape.size()), true);
  in_slice[1] = false;
  return slice_dims(in.shape, in_slice);
}

std::vector<double> per_channel(const LocalCall& call, const Array* array, std::int64_t channels,
                                double absent) {
  if (!array) return std::vector<double>(to_index(channels), absent);
  call.expect(array->count() == channels, "expected one number a channel");
  return values<double>(*array);
}

struct BatchStatistics {
  std::vector<double> mean, scale;  // scale: 1 / standard deviation
};

BatchStatistics of_batch(Slices<double>& x, double eps) {
  BatchStatistics out;
  double n = static_cast<double>(x.dims.length);
  for (std::int64_t c = 0; c < x.dims.count; ++c) {
    double mean = 0, total = 0;
    for (double value : x.slice(c)) mean += value / n;
    for (double value : x.slice(c)) total += (value - mean) * (value - mean);
    out.mean.push_back(mean);
    out.scale.push_back(1 / std::sqrt(total / n + eps));
  }
  return out;
}

BatchStatistics given(const LocalCall& call, std::size_t mean, std::size_t variance,
                      std::int64_t channels, double eps) {
  BatchStatistics out{per_channel(call, &call.tensor(mean), channels, 0),
                      per_channel(call, &call.tensor(variance), channels, 1)};
  for (double& value : out.scale) value = 1 / std::sqrt(value + eps);
  return out;
}

bool trains(const LocalCall& call) {
  if (call.name == "_native_batch_norm_legit_no_training") return false;
  return call.name == "_batch_norm_with_update" || call.attributes.boolean("training", false);
}

ArrayResults batch_norm(const LocalCall& call) {
  const Array& in = call.tensor(0);
  Slices<double> x = slices<double>(in, by_channel(call, in));
  std::int64_t channels = x.dims.count;
  double eps = call.number("eps", 1e-5);
  bool training = trains(call);
  BatchStatistics of = training ? of_batch(x, eps) : given(call, 3, 4, channels, eps);
  std::vector<double> weight = per_channel(call, call.optional_tensor(1), channels, 1),
                      bias = per_channel(call, call.optional_tensor(2), channels, 0);
  for (std::int64_t c = 0; c < channels; ++c) {
    std::size_t at = to_index(c);
    for (double& value : x.slice(c))
      value = (value - of.mean[at]) * of.scale[at] * weight[at] + bias[at];
  }
  Array out = unsliced(in.dtype, std::move(x));
  if (!training) of = {};
  Shape made{std::ssize(of.mean)};
  ArrayResults all = results(std::move(out), Array::of(in.dtype, made, of.mean),
                             Array::of(in.dtype, made, of.scale));
  if (call.name == "_batch_norm_with_update") all.emplace_back(Array::zeros(DType::U8, Shape{0}));
  return all;
}

// Arguments: gradient, input, weight, running mean and variance, saved mean and scale.
ArrayResults batch_norm_backward(const LocalCall& call) {
  const Array &grad = call.tensor(0), &in = call.tensor(1), *weight = call.optional_tensor(2);
  call.expect(grad.shape == in.shape, "expected a gradient of the input's shape");
  Slices<double> x = slices<double>(in, by_channel(call, in)),
                 g = slices<double>(grad, by_channel(call, grad));
  std::int64_t channels = x.dims.count;
  double eps = call.number("eps", 1e-5), n = static_cast<double>(x.dims.length);
  bool training = call.attributes.boolean("train", false);
  BatchStatistics of = training ? BatchStatistics{per_channel(call, &call.tensor(5), channels, 0),
                                                  per_channel(call, &call.tensor(6), channels, 1)}
                                : given(call, 3, 4, channels, eps);
  std::vector<double> w = per_channel(call, weight, channels, 1), dw, db;
  for (std::int64_t c = 0; c < channels; ++c) {
    double mean = of.mean[to_index(c)], scale = of.scale[to_index(c)], sum = 0, product = 0;
    std::span<double> values = x.slice(c), slopes = g.slice(c);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = (values[i] - mean) * scale;
      sum += slopes[i];
      product += slopes[i] * values[i];
    }
    dw.push_back(product);
    db.push_back(sum);
    if (!training) sum = product = 0;  // the statistics do not depend on the input
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = w[to_index(c)] * scale * (slopes[i] - sum / n - values[i] * product / n);
  }
  std::vector<bool> mask = call.attributes.booleans("output_mask", {true, true, true});
  mask.resize(3, false);
  ArrayResults out(3);
  DType dtype = weight ? weight->dtype : in.dtype;
  if (mask[0]) out[0] = unsliced(in.dtype, std::move(x));
  if (mask[1]) out[1] = Array::of(dtype, Shape{channels}, dw);
  if (mask[2]) out[2] = Array::of(dtype, Shape{channels}, db);
  return out;
}

constexpr std::array kBatchNormRows{
    OperatorRow{"native_batch_norm", batch_norm, 3},
    OperatorRow{"_native_batch_norm_legit", batch_norm, 3},
    OperatorRow{"_native_batch_norm_legit_no_training", batch_norm, 3},
    OperatorRow{"_batch_norm_with_update", batch_norm, 4},
    OperatorRow{"native_batch_norm_backward", batch_norm_backward, 3},
};

}  // namespace

std::span<const OperatorRow> batch_norm_rows() { return kBatchNormRows; }

}  // namespace reshard::sim
