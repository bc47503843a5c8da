// SPDX-License-Identifier: BSD-3-Clause
// Layer, RMS and group norm, and their derivatives. All of them shift a slice to mean 0 (except RMS
// norm), scale it to variance 1, and apply weight and bias by channel.
#include <array>
#include <functional>

#include "core/ops/attributes.h"
#include "sim/operators/folds/slices.h"
#include "sim/operators/pointwise/arithmetic.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

// `count` slices of `length` elements, in order. Element k of slice i is in channel(i, k).
struct Normalized {
  std::int64_t count, length;
  bool shifts;
  std::function<std::int64_t(std::int64_t, std::int64_t)> channel;
};

struct NormStatistics {
  std::vector<double> mean, rstd;
};

std::vector<double> optional_values(const Array* array) {
  return array ? values<double>(*array) : std::vector<double>{};
}

NormStatistics normalize(const Normalized& form, std::vector<double>& x, const Array* weight,
                         const Array* bias, double eps) {
  std::vector<double> w = optional_values(weight), b = optional_values(bias);
  NormStatistics out{std::vector<double>(to_index(form.count), 0),
                     std::vector<double>(to_index(form.count), 0)};
  double n = static_cast<double>(form.length);
  for (std::int64_t i = 0; i < form.count; ++i) {
    std::span<double> slice(x.data() + i * form.length, to_index(form.length));
    double &mean = out.mean[to_index(i)], &rstd = out.rstd[to_index(i)], total = 0;
    for (double v : slice) mean += form.shifts ? v : 0;
    mean /= n;
    for (double v : slice) total += (v - mean) * (v - mean);
    rstd = 1 / std::sqrt(total / n + eps);
    for (std::int64_t k = 0; k < form.length; ++k) {
      std::size_t c = to_index(form.channel(i, k));
      double& v = slice[to_index(k)];
      v = (v - mean) * rstd * (w.empty() ? 1 : w[c]) + (b.empty() ? 0 : b[c]);
    }
  }
  return out;
}

struct Gradients {
  std::vector<double> input, weight, bias;
};

Gradients normalize_backward(const Normalized& form, const std::vector<double>& grad,
                             const std::vector<double>& x, const NormStatistics& of,
                             const std::vector<double>& weight, std::int64_t channels) {
  Gradients out{std::vector<double>(x.size()), std::vector<double>(to_index(channels), 0),
                std::vector<double>(to_index(channels), 0)};
  double n = static_cast<double>(form.length);
  for (std::int64_t i = 0; i < form.count; ++i) {
    double mean = of.mean.empty() ? 0 : of.mean[to_index(i)], rstd = of.rstd[to_index(i)];
    double sum = 0, product = 0;
    auto normal = [&](std::size_t at) { return (x[at] - mean) * rstd; };
    auto weighted = [&](std::size_t at, std::size_t c) {
      return grad[at] * (weight.empty() ? 1 : weight[c]);
    };
    for (std::int64_t k = 0; k < form.length; ++k) {
      std::size_t at = to_index(i * form.length + k), c = to_index(form.channel(i, k));
      out.weight[c] += grad[at] * normal(at);
      out.bias[c] += grad[at];
      sum += form.shifts ? weighted(at, c) : 0;
      product += weighted(at, c) * normal(at);
    }
    for (std::int64_t k = 0; k < form.length; ++k) {
      std::size_t at = to_index(i * form.length + k), c = to_index(form.channel(i, k));
      out.input[at] = rstd * (weighted(at, c) - sum / n - normal(at) * product / n);
    }
  }
  return out;
}

// The gradients dx, dweight, dbias, without those that "output_mask" excludes.
ArrayResults wanted(const LocalCall& call, const Array& x, Gradients&& g, const Array* weight,
                    const Shape& weight_shape, std::size_t outputs) {
  std::vector<bool> mask = call.attributes.booleans("output_mask", {true, true, true});
  mask.resize(outputs, false);
  DType dtype = weight ? weight->dtype : x.dtype;
  ArrayResults out(outputs);
  if (mask[0]) out[0] = Array::of(x.dtype, x.shape, g.input);
  if (mask[1]) out[1] = Array::of(dtype, weight_shape, g.weight);
  if (outputs > 2 && mask[2]) out[2] = Array::of(dtype, weight_shape, g.bias);
  return out;
}

// For layer and RMS norm: slices over the last dims, with a channel for each of their elements.
Normalized over_last(const LocalCall& call, const Array& x, bool shifts, Shape& normalized) {
  const int dims = normalized_dims(call.attributes, x.shape);
  call.expect(dims >= 1, "expected a normalized_shape of 1 dim at least");
  for (int d = x.shape.size() - dims; d < x.shape.size(); ++d) normalized.push_back(x.shape[d]);
  call.expect(is_real(x.dtype), "expected a floating tensor");
  SliceDims slices = last_dims(x.shape, dims);
  return {slices.count, slices.length, shifts, [](std::int64_t, std::int64_t k) { return k; }};
}

void expect_channels(const LocalCall& call, const Array* array, std::int64_t channels) {
  call.expect(!array || array->count() == channels, "expected weight and bias one a channel");
}

// One statistic per slice, in the shape of the input with extent 1 for the normalized dims.
Array statistic(const Array& x, DType dtype, const Shape& normalized,
                const std::vector<double>& values) {
  return Array::of(dtype, last_dims(x.shape, normalized.size()).reduced(true), values);
}

template <bool kShifts>
ArrayResults norm_over_last(const LocalCall& call) {
  const Array &x = call.tensor(0), *weight = call.optional_tensor(1),
              *bias = kShifts ? call.optional_tensor(2) : nullptr;
  Shape normalized;
  Normalized form = over_last(call, x, kShifts, normalized);
  expect_channels(call, weight, form.length);
  expect_channels(call, bias, form.length);
  double least = x.dtype == DType::F64 ? 0x1p-52 : 0x1p-23;
  // As on CPUs: for narrower dtypes, RMS norm returns its statistic in f32.
  DType dtype = kShifts || x.dtype == DType::F64 ? x.dtype : DType::F32;
  std::vector<double> out = values<double>(x);
  NormStatistics of =
      normalize(form, out, weight, bias, call.number("eps", kShifts ? 1e-5 : least));
  Array mean = statistic(x, dtype, normalized, of.mean),
        rstd = statistic(x, dtype, normalized, of.rstd);
  if constexpr (kShifts)
    return results(Array::of(x.dtype, x.shape, out), std::move(mean), std::move(rstd));
  return results(Array::of(x.dtype, x.shape, out), std::move(rstd));
}

template <bool kShifts>
ArrayResults norm_over_last_alone(const LocalCall& call) {
  ArrayResults out = norm_over_last<kShifts>(call);
  out.resize(1);
  return out;
}

// Arguments of layer norm: grad, x, mean, rstd, weight, bias; of RMS norm: grad, x, rstd, weight.
template <bool kShifts>
ArrayResults norm_over_last_backward(const LocalCall& call) {
  const Array &grad = call.tensor(0), &x = call.tensor(1), &rstd = call.tensor(kShifts ? 3 : 2),
              *weight = call.optional_tensor(kShifts ? 4 : 3);
  Shape normalized;
  Normalized form = over_last(call, x, kShifts, normalized);
  NormStatistics of{kShifts ? values<double>(call.tensor(2)) : std::vector<double>{},
                    values<double>(rstd)};
  call.expect(grad.shape == x.shape && rstd.count() == form.count &&
                  (!kShifts || call.tensor(2).count() == form.count),
              "expected gradient and statistics of the input's shape");
  expect_channels(call, weight, form.length);
  Gradients made = normalize_backward(form, values<double>(grad), values<double>(x), of,
                                      optional_values(weight), form.length);
  return wanted(call, x, std::move(made), weight, normalized, kShifts ? 3 : 2);
}

// For group norm: slices of C / groups channels of an input (N, C, ...). Takes N, C and HxW from
// the input and ignores those attributes.
Normalized over_groups(const LocalCall& call, const Array& x, std::int64_t groups) {
  call.expect(x.shape.size() >= 2, "expected an input of 2 dims at least");
  std::int64_t channels = x.shape[1], inner = 1;
  for (int d = 2; d < x.shape.size(); ++d) inner *= x.shape[d];
  call.expect(groups > 0 && groups <= std::max<std::int64_t>(channels, 1) && channels % groups == 0,
              "expected groups of equal sizes");
  call.expect(is_real(x.dtype), "expected a floating tensor");
  std::int64_t of_group = channels / groups;
  return {x.shape[0] * groups, of_group * inner, true,
          [=](std::int64_t i, std::int64_t k) { return i % groups * of_group + k / inner; }};
}

ArrayResults group_norm_in(const LocalCall& call, const char* groups_name) {
  const Array &x = call.tensor(0), *weight = call.optional_tensor(1),
              *bias = call.optional_tensor(2);
  std::int64_t groups = call.attributes.integer(groups_name);
  Normalized form = over_groups(call, x, groups);
  expect_channels(call, weight, x.shape[1]);
  expect_channels(call, bias, x.shape[1]);
  std::vector<double> out = values<double>(x);
  NormStatistics of = normalize(form, out, weight, bias, call.number("eps", 1e-5));
  Shape shape{x.shape[0], groups};
  return results(Array::of(x.dtype, x.shape, out), Array::of(x.dtype, shape, of.mean),
                 Array::of(x.dtype, shape, of.rstd));
}
ArrayResults native_group_norm(const LocalCall& call) { return group_norm_in(call, "group"); }
ArrayResults group_norm(const LocalCall& call) {
  ArrayResults out = group_norm_in(call, "num_groups");
  out.resize(1);
  return out;
}

ArrayResults native_group_norm_backward(const LocalCall& call) {
  const Array &grad = call.tensor(0), &x = call.tensor(1), *weight = call.optional_tensor(4);
  Normalized form = over_groups(call, x, call.attributes.integer("group"));
  NormStatistics of{values<double>(call.tensor(2)), values<double>(call.tensor(3))};
  call.expect(grad.shape == x.shape && std::ssize(of.mean) == form.count &&
                  std::ssize(of.rstd) == form.count,
              "expected gradient and statistics of the input's shape");
  expect_channels(call, weight, x.shape[1]);
  Gradients made = normalize_backward(form, values<double>(grad), values<double>(x), of,
                                      optional_values(weight), x.shape[1]);
  return wanted(call, x, std::move(made), weight, Shape{x.shape[1]}, 3);
}

constexpr std::array kNormsRows{
    OperatorRow{"native_layer_norm", norm_over_last<true>, 3},
    OperatorRow{"native_layer_norm_backward", norm_over_last_backward<true>, 3},
    OperatorRow{"layer_norm", norm_over_last_alone<true>},
    OperatorRow{"_fused_rms_norm", norm_over_last<false>, 2},
    OperatorRow{"_fused_rms_norm_backward", norm_over_last_backward<false>, 2},
    OperatorRow{"rms_norm", norm_over_last_alone<false>},
    OperatorRow{"native_group_norm", native_group_norm, 3},
    OperatorRow{"native_group_norm_backward", native_group_norm_backward, 3},
    OperatorRow{"group_norm", group_norm},
};

}  // namespace

std::span<const OperatorRow> norm_rows() { return kNormsRows; }

}  // namespace reshard::sim
