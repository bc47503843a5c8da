// SPDX-License-Identifier: BSD-3-Clause
// Convolution of 1 to 3 dims, transposed or not, and its derivatives. All of them iterate over the
// same taps: (input, weight, output) triples of elements that are multiplied. In transposed
// convolution, input and output change roles.
#include <algorithm>
#include <array>

#include "core/ops/attributes.h"
#include "sim/operators/folds/slices.h"
#include "sim/operators/images/windows.h"
#include "sim/operators/pointwise/arithmetic.h"

namespace reshard::sim {
namespace {

// Shapes (N, C, D, H, W): `wide` is the side that is cut into windows, `narrow` the side with one
// element per window. `weight` is (narrow channels, wide channels / groups, kernel).
struct Windows {
  std::array<std::int64_t, 5> wide, narrow, weight;
  std::array<std::int64_t, 3> stride, padding, dilation;
  std::int64_t groups;
};

std::int64_t place(const std::array<std::int64_t, 5>& shape, std::int64_t a, std::int64_t b,
                   std::int64_t c, std::int64_t d, std::int64_t e) {
  return (((a * shape[1] + b) * shape[2] + c) * shape[3] + d) * shape[4] + e;
}

// Calls visit(wide, weight, narrow, count, wide step) for each run of taps along a row that share a
// weight: offsets of the first elements, number of taps, and the step on the wide side. The step on
// the narrow side is 1.
template <class Visit>
void for_each_tap(const Windows& of, Visit&& visit) {
  std::int64_t channels = of.narrow[1] / of.groups, inputs = of.weight[1];
  auto at = [&](std::size_t d, std::int64_t out, std::int64_t tap) {
    return out * of.stride[d] - of.padding[d] + tap * of.dilation[d];
  };
  auto inside = [&](std::size_t d, std::int64_t i) { return i >= 0 && i < of.wide[d + 2]; };
  for (std::int64_t n = 0; n < of.narrow[0]; ++n)
    for (std::int64_t c = 0; c < of.narrow[1]; ++c)
      for (std::int64_t i = 0; i < inputs; ++i)
        for (std::int64_t kd = 0; kd < of.weight[2]; ++kd)
          for (std::int64_t kh = 0; kh < of.weight[3]; ++kh)
            for (std::int64_t kw = 0; kw < of.weight[4]; ++kw)
              for (std::int64_t d = 0; d < of.narrow[2]; ++d) {
                if (!inside(0, at(0, d, kd))) continue;
                for (std::int64_t h = 0; h < of.narrow[3]; ++h) {
                  if (!inside(1, at(1, h, kh))) continue;
                  std::int64_t first = 0, last = of.narrow[4];
                  while (first < last && at(2, first, kw) < 0) ++first;
                  while (last > first && at(2, last - 1, kw) >= of.wide[4]) --last;
                  if (first == last) continue;
                  visit(place(of.wide, n, c / channels * inputs + i, at(0, d, kd), at(1, h, kh),
                              at(2, first, kw)),
                        place(of.weight, c, i, kd, kh, kw), place(of.narrow, n, c, d, h, first),
                        last - first, of.stride[2]);
                }
              }
}

using Numbers = std::vector<double>;

Numbers to_narrow(const Windows& of, const Numbers& wide, const Numbers& weight,
                  std::size_t count) {
  Numbers out(count, 0);
  for_each_tap(of, [&](std::int64_t x, std::int64_t w, std::int64_t y, std::int64_t length,
                       std::int64_t step) {
    for (std::int64_t k = 0; k < length; ++k)
      out[to_index(y + k)] += wide[to_index(x + k * step)] * weight[to_index(w)];
  });
  return out;
}

Numbers to_wide(const Windows& of, const Numbers& narrow, const Numbers& weight,
                std::size_t count) {
  Numbers out(count, 0);
  for_each_tap(of, [&](std::int64_t x, std::int64_t w, std::int64_t y, std::int64_t length,
                       std::int64_t step) {
    for (std::int64_t k = 0; k < length; ++k)
      out[to_index(x + k * step)] += narrow[to_index(y + k)] * weight[to_index(w)];
  });
  return out;
}

Numbers to_weight(const Windows& of, const Numbers& wide, const Numbers& narrow,
                  std::size_t count) {
  Numbers out(count, 0);
  for_each_tap(of, [&](std::int64_t x, std::int64_t w, std::int64_t y, std::int64_t length,
                       std::int64_t step) {
    double total = 0;
    for (std::int64_t k = 0; k < length; ++k)
      total += wide[to_index(x + k * step)] * narrow[to_index(y + k)];
    out[to_index(w)] += total;
  });
  return out;
}

// Sets the last `dims` entries, which are all alike.
void set_dims(const LocalCall& call, const char* name, int dims,
              std::array<std::int64_t, 3>& into) {
  const std::vector<std::int64_t> given =
      number_per_dim(call.attributes, name, to_index(dims), {into[0]});
  std::copy(given.begin(), given.end(), into.end() - dims);
}

std::array<std::int64_t, 5> as_3d(const Shape& shape) {
  std::array<std::int64_t, 5> out{shape[0], shape[1], 1, 1, 1};
  for (int d = 2; d < shape.size(); ++d) out[to_index(5 - shape.size() + d)] = shape[d];
  return out;
}

// The windows of an input and a weight. Sets `output` to the shape of the output.
Windows windows(const LocalCall& call, const Shape& input, const Shape& weight, bool transposed,
                Shape& output) {
  int rank = input.size(), dims = rank - 2;
  call.expect(dims >= 1 && dims <= 3 && weight.size() == rank,
              "expected input and weight of 3 to 5 dims");
  Windows out{
      {}, {}, as_3d(weight), {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, call.attributes.integer("groups", 1)};
  std::array<std::int64_t, 3> more{0, 0, 0};
  set_dims(call, "stride", dims, out.stride);
  set_dims(call, "padding", dims, out.padding);
  set_dims(call, "dilation", dims, out.dilation);
  if (transposed) set_dims(call, "output_padding", dims, more);
  for (std::int64_t places : more)
    call.expect(places >= 0 && places <= kMostPlaces, "expected an output_padding from 0 to 2^20");
  call.expect(out.groups > 0 && out.groups <= kMostPlaces && weight[0] % out.groups == 0,
              "expected channels that divide by the groups");
  call.expect(input[1] == (transposed ? weight[0] : weight[1] * out.groups),
              "expected an input of the weight's channels");
  output = input;
  output[1] = transposed ? weight[1] * out.groups : weight[0];
  for (int d = 0; d < dims; ++d) {
    std::size_t at = to_index(3 - dims + d);
    std::int64_t stride = out.stride[at], padding = out.padding[at], dilation = out.dilation[at];
    call.expect(stride > 0 && dilation > 0 && padding >= 0 && stride <= kMostPlaces &&
                    padding <= kMostPlaces && dilation <= kMostPlaces && weight[d + 2] > 0,
                "expected a stride and dilation above 0 and a padding from 0");
    std::int64_t reach = dilation * (weight[d + 2] - 1);
    output[d + 2] = transposed ? (input[d + 2] - 1) * stride - 2 * padding + reach + more[at] + 1
                               : (input[d + 2] + 2 * padding - reach - 1) / stride + 1;
    call.expect(output[d + 2] > 0 && (transposed || input[d + 2] + 2 * padding > reach),
                "expected an input not smaller than the kernel");
  }
  out.wide = as_3d(transposed ? output : input);
  out.narrow = as_3d(transposed ? input : output);
  return out;
}

ArrayResults convolve(const LocalCall& call, bool transposed) {
  const Array &input = call.tensor(0), &weight = call.tensor(1), *bias = call.optional_tensor(2);
  call.expect(is_real(input.dtype), "expected floating tensors");
  Shape shape;
  Windows of = windows(call, input.shape, weight.shape, transposed, shape);
  std::size_t count = to_index(Array::zeros(input.dtype, shape).count());
  Numbers x = values<double>(input), w = values<double>(weight);
  Numbers out = transposed ? to_wide(of, x, w, count) : to_narrow(of, x, w, count);
  if (bias) {
    Numbers b = values<double>(*bias);
    call.expect(std::ssize(b) == shape[1], "expected a bias for each channel");
    std::size_t inner = count ? count / to_index(shape[0] * shape[1]) : 1;
    for (std::size_t i = 0; i < count; ++i) out[i] += b[i / inner % b.size()];
  }
  return results(Array::of(input.dtype, shape, out));
}

ArrayResults convolution(const LocalCall& call) {
  return convolve(call, call.attributes.boolean("transposed", false));
}
ArrayResults conv(const LocalCall& call) { return convolve(call, false); }
ArrayResults conv_transpose(const LocalCall& call) { return convolve(call, true); }

ArrayResults convolution_backward(const LocalCall& call) {
  const Array &grad = call.tensor(0), &input = call.tensor(1), &weight = call.tensor(2);
  bool transposed = call.attributes.boolean("transposed", false);
  Shape shape;
  Windows of = windows(call, input.shape, weight.shape, transposed, shape);
  call.expect(grad.shape == shape, "expected a gradient of the output's shape");
  std::vector<bool> mask = call.attributes.booleans("output_mask", {true, true, true});
  mask.resize(3, false);
  Numbers g = values<double>(grad), x = values<double>(input), w = values<double>(weight);
  ArrayResults out(3);
  if (mask[0])
    out[0] = Array::of(input.dtype, input.shape,
                       transposed ? to_narrow(of, g, w, x.size()) : to_wide(of, g, w, x.size()));
  if (mask[1])
    out[1] = Array::of(weight.dtype, weight.shape,
                       transposed ? to_weight(of, g, x, w.size()) : to_weight(of, x, g, w.size()));
  if (mask[2]) {
    Numbers b(to_index(shape[1]), 0);
    std::size_t inner = g.empty() ? 1 : g.size() / to_index(shape[0] * shape[1]);
    for (std::size_t i = 0; i < g.size(); ++i) b[i / inner % b.size()] += g[i];
    out[2] = Array::of(grad.dtype, Shape{shape[1]}, b);
  }
  return out;
}

constexpr std::array kConvolutionRows{
    OperatorRow{"convolution", convolution},
    OperatorRow{"_convolution", convolution},
    OperatorRow{"conv1d", conv},
    OperatorRow{"conv2d", conv},
    OperatorRow{"conv3d", conv},
    OperatorRow{"conv_transpose1d", conv_transpose},
    OperatorRow{"conv_transpose2d", conv_transpose},
    OperatorRow{"conv_transpose3d", conv_transpose},
    OperatorRow{"convolution_backward", convolution_backward, 3},
};

}  // namespace

std::span<const OperatorRow> convolution_rows() { return kConvolutionRows; }

}  // namespace reshard::sim
