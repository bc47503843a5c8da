// SPDX-License-Identifier: BSD-3-Clause
// Average pooling and image resizing. Both are separable: along each spatial dim, an element of the
// result is a weighted sum of a few elements of the input. Their derivatives apply the same weights
// in the opposite direction.
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/operators/images/windows.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

struct Tap {
  std::int64_t at;
  double weight;
};
using Taps = std::vector<std::vector<Tap>>;  // by element of the result

// The weights along three spatial dims; missing dims have length 1.
struct Sampling {
  std::int64_t outer = 1;
  std::array<std::int64_t, 3> wide{1, 1, 1};
  std::array<Taps, 3> taps{Taps{{{0, 1}}}, Taps{{{0, 1}}}, Taps{{{0, 1}}}};
};

// Calls visit(input element, result element, weight) for every weight.
template <class Visit>
void for_each_tap(const Sampling& of, Visit&& visit) {
  std::size_t out = 0;
  for (std::int64_t i = 0; i < of.outer; ++i)
    for (const auto& a : of.taps[0])
      for (const auto& b : of.taps[1])
        for (const auto& c : of.taps[2]) {
          for (Tap x : a)
            for (Tap y : b)
              for (Tap z : c)
                visit(to_index(((i * of.wide[0] + x.at) * of.wide[1] + y.at) * of.wide[2] + z.at),
                      out, x.weight * y.weight * z.weight);
          ++out;
        }
}

// The shape of the result.
Shape sampled_shape(Shape shape, int dims, const Sampling& of) {
  for (int d = 0; d < dims; ++d)
    shape[shape.size() - dims + d] = std::ssize(of.taps[to_index(3 - dims + d)]);
  return shape;
}

Array sampled(const Array& in, int dims, const Sampling& of) {
  Shape shape = sampled_shape(in.shape, dims, of);
  std::vector<double> x = values<double>(in), out(to_index(computable_count(shape)), 0);
  for_each_tap(of, [&](std::size_t from, std::size_t to, double w) { out[to] += w * x[from]; });
  return Array::of(in.dtype, shape, out);
}

Array sampled_back(const LocalCall& call, const Array& grad, const Shape& shape, int dims,
                   const Sampling& of) {
  call.expect(grad.shape == sampled_shape(shape, dims, of), "expected a gradient of the result");
  std::vector<double> g = values<double>(grad), out(to_index(computable_count(shape)), 0);
  for_each_tap(of, [&](std::size_t from, std::size_t to, double w) { out[from] += w * g[to]; });
  return Array::of(grad.dtype, shape, out);
}

// `make(d, length)` gives the taps of spatial dim d.
template <class Make>
Sampling sampling(const LocalCall& call, const Shape& shape, int dims, Make&& make) {
  Sampling out;
  out.outer = outer_count(call, shape, dims);
  for (int d = 0; d < dims; ++d) {
    std::size_t at = to_index(3 - dims + d);
    out.wide[at] = shape[shape.size() - dims + d];
    out.taps[at] = make(d, out.wide[at]);
  }
  return out;
}

Taps averages(const std::vector<Window>& windows, double divisor, bool with_padding) {
  Taps out;
  for (const Window& window : windows) {
    double parts = static_cast<double>(with_padding ? window.padded : window.end - window.start);
    std::vector<Tap>& taps = out.emplace_back();
    for (std::int64_t at = window.start; at < window.end; ++at)
      taps.push_back({at, 1 / (divisor > 0 ? divisor : parts)});
  }
  return out;
}

template <int kDims>
ArrayResults avg_pool(const LocalCall& call) {
  const Array& in = call.tensor(0);
  bool with_padding = call.attributes.boolean("count_include_pad", true);
  bool fixed = call.attributes.has("divisor_override");
  double divisor = fixed ? call.number("divisor_override", 1) : 0;
  call.expect(!fixed || divisor != 0, "expected a divisor_override other than 0");
  PoolWindows pool(call, kDims);
  return results(sampled(
      in, kDims, sampling(call, in.shape, kDims, [&](int d, std::int64_t n) {
        // A given divisor is applied along one dim only.
        return averages(pool.windows(d, n), !fixed ? 0 : d == 0 ? divisor : 1, with_padding);
      })));
}

template <int kDims>
ArrayResults adaptive_avg_pool(const LocalCall& call) {
  const Array& in = call.tensor(0);
  std::vector<std::int64_t> sizes = spatial_sizes(call, "output_size", kDims);
  return results(sampled(in, kDims, sampling(call, in.shape, kDims, [&](int d, std::int64_t n) {
                           return averages(adaptive_windows(n, sizes[to_index(d)]), 0, false);
                         })));
}

ArrayResults adaptive_avg_pool2d_backward(const LocalCall& call) {
  const Array &grad = call.tensor(0), &in = call.tensor(1);
  call.expect(grad.shape.size() == in.shape.size(), "expected tensors of one number of dims");
  auto taps = [&](int d, std::int64_t n) {
    return averages(adaptive_windows(n, grad.shape[grad.shape.size() - 2 + d]), 0, false);
  };
  return results(sampled_back(call, grad, in.shape, 2, sampling(call, in.shape, 2, taps)));
}

// ---- image resizing

enum class Filter : std::uint8_t { Nearest, NearestExact, Linear, Cubic };

// The position of element i of a dim of length `to` in the input's dim of length `from`.
struct Position {
  std::int64_t from, to;
  double scale;  // 0: follows from the lengths
  bool align_corners;

  // Rounded to f32, as in PyTorch's kernels for f32 images.
  double step() const {
    if (scale > 0) return static_cast<float>(1 / scale);
    return static_cast<float>(from) / static_cast<float>(to);
  }
  double of(std::int64_t i) const {
    auto x = static_cast<double>(i);
    if (!align_corners) return (x + 0.5) * step() - 0.5;
    return to > 1 ? x * static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0;
  }
};

std::vector<Tap> taps_at(Filter filter, const Position& position, std::int64_t i) {
  auto inside = [&](double x) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(x), 0, position.from - 1);
  };
  auto x = static_cast<double>(i);
  if (filter == Filter::Nearest) return {{inside(std::floor(x * position.step())), 1}};
  if (filter == Filter::NearestExact) return {{inside(std::floor((x + 0.5) * position.step())), 1}};
  double at = position.of(i);
  if (filter == Filter::Linear) {
    at = std::max(at, 0.0);
    double low = std::floor(at);
    return {{inside(low), 1 - (at - low)}, {inside(low + 1), at - low}};
  }
  double low = std::floor(at), t = at - low;
  constexpr double kA = -0.75;
  auto near = [](double d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; };
  auto far = [](double d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
  return {{inside(low - 1), far(t + 1)},
          {inside(low), near(t)},
          {inside(low + 1), near(1 - t)},
          {inside(low + 2), far(2 - t)}};
}

Sampling image_sampling(const LocalCall& call, const Shape& shape, int dims, Filter filter,
                        const std::vector<std::int64_t>& sizes) {
  static constexpr std::array<const char*, 3> kScales{"scales_d", "scales_h", "scales_w"};
  return sampling(call, shape, dims, [&](int d, std::int64_t n) {
    const char* name = dims == 1 ? "scales" : kScales[to_index(3 - dims + d)];
    std::int64_t to = sizes[to_index(d)];
    call.expect(n > 0 && to > 0, "expected images that are not empty");
    Position position{n, to, call.number(name, 0), call.attributes.boolean("align_corners", false)};
    Taps taps;
    for (std::int64_t i = 0; i < to; ++i) taps.push_back(taps_at(filter, position, i));
    return taps;
  });
}

template <int kDims, Filter kFilter>
ArrayResults upsample(const LocalCall& call) {
  const Array& in = call.tensor(0);
  std::vector<std::int64_t> sizes = spatial_sizes(call, "output_size", kDims);
  return results(sampled(in, kDims, image_sampling(call, in.shape, kDims, kFilter, sizes)));
}

// Takes batch and channels from the gradient and ignores those of "input_size".
template <int kDims, Filter kFilter>
ArrayResults upsample_backward(const LocalCall& call) {
  const Array& grad = call.tensor(0);
  std::vector<std::int64_t> input = call.attributes.integers("input_size"), sizes;
  call.expect(input.size() == kDims + 2 && grad.shape.size() == kDims + 2,
              "expected an input_size of as many dims as the gradient");
  Shape shape = grad.shape;
  for (int d = 0; d < kDims; ++d) {
    shape[d + 2] = input[to_index(d + 2)];
    sizes.push_back(grad.shape[d + 2]);
  }
  return results(
      sampled_back(call, grad, shape, kDims, image_sampling(call, shape, kDims, kFilter, sizes)));
}

constexpr std::array kResamplingRows{
    OperatorRow{"avg_pool1d", avg_pool<1>},
    OperatorRow{"avg_pool2d", avg_pool<2>},
    OperatorRow{"avg_pool3d", avg_pool<3>},
    OperatorRow{"adaptive_avg_pool1d", adaptive_avg_pool<1>},
    OperatorRow{"_adaptive_avg_pool2d", adaptive_avg_pool<2>},
    OperatorRow{"_adaptive_avg_pool3d", adaptive_avg_pool<3>},
    OperatorRow{"_adaptive_avg_pool2d_backward", adaptive_avg_pool2d_backward},
    OperatorRow{"upsample_nearest1d", upsample<1, Filter::Nearest>},
    OperatorRow{"upsample_nearest2d", upsample<2, Filter::Nearest>},
    OperatorRow{"upsample_nearest3d", upsample<3, Filter::Nearest>},
    OperatorRow{"_upsample_nearest_exact1d", upsample<1, Filter::NearestExact>},
    OperatorRow{"_upsample_nearest_exact2d", upsample<2, Filter::NearestExact>},
    OperatorRow{"_upsample_nearest_exact3d", upsample<3, Filter::NearestExact>},
    OperatorRow{"upsample_linear1d", upsample<1, Filter::Linear>},
    OperatorRow{"upsample_bilinear2d", upsample<2, Filter::Linear>},
    OperatorRow{"upsample_trilinear3d", upsample<3, Filter::Linear>},
    OperatorRow{"upsample_bicubic2d", upsample<2, Filter::Cubic>},
    OperatorRow{"upsample_nearest1d_backward", upsample_backward<1, Filter::Nearest>},
    OperatorRow{"upsample_nearest2d_backward", upsample_backward<2, Filter::Nearest>},
    OperatorRow{"upsample_nearest3d_backward", upsample_backward<3, Filter::Nearest>},
    OperatorRow{"_upsample_nearest_exact1d_backward", upsample_backward<1, Filter::NearestExact>},
    OperatorRow{"_upsample_nearest_exact2d_backward", upsample_backward<2, Filter::NearestExact>},
    OperatorRow{"_upsample_nearest_exact3d_backward", upsample_backward<3, Filter::NearestExact>},
    OperatorRow{"upsample_linear1d_backward", upsample_backward<1, Filter::Linear>},
    OperatorRow{"upsample_bilinear2d_backward", upsample_backward<2, Filter::Linear>},
    OperatorRow{"upsample_trilinear3d_backward", upsample_backward<3, Filter::Linear>},
    OperatorRow{"upsample_bicubic2d_backward", upsample_backward<2, Filter::Cubic>},
};

}  // namespace

std::span<const OperatorRow> resampling_rows() { return kResamplingRows; }

}  // namespace reshard::sim
