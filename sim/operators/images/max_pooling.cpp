// SPDX-License-Identifier: BSD-3-Clause
// Max pooling: the largest element of every window and its index among the spatial elements.
#include <array>
#include <cmath>
#include <functional>

#include "sim/operators/images/windows.h"
#include "sim/operators/pointwise/arithmetic.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

// Sizes and windows of three spatial dims; missing dims have one window of one element.
struct Pooled {
  std::array<std::int64_t, 3> sizes{1, 1, 1};
  std::array<std::vector<Window>, 3> windows;
};

using WindowsOf = std::function<std::vector<Window>(int, std::int64_t)>;

Pooled pooled(const Shape& shape, int dims, const WindowsOf& windows_of) {
  Pooled out;
  for (int d = 0; d < 3; ++d) {
    int own = d - (3 - dims);
    if (own >= 0) out.sizes[to_index(d)] = shape[shape.size() - dims + own];
    out.windows[to_index(d)] =
        own >= 0 ? windows_of(own, out.sizes[to_index(d)]) : std::vector<Window>{{0, 1, 1}};
  }
  return out;
}

// Calls visit(index among the spatial elements) for each element of a window.
template <class Visit>
void for_each_in(const Pooled& of, const Window& a, const Window& b, const Window& c,
                 Visit&& visit) {
  for (std::int64_t x = a.start; x < a.end; x += a.step)
    for (std::int64_t y = b.start; y < b.end; y += b.step)
      for (std::int64_t z = c.start; z < c.end; z += c.step)
        visit((x * of.sizes[1] + y) * of.sizes[2] + z);
}

ArrayResults largest(const LocalCall& call, int dims, const WindowsOf& windows_of) {
  const Array& in = call.tensor(0);
  std::int64_t outer = outer_count(call, in.shape, dims);
  Pooled of = pooled(in.shape, dims, windows_of);
  std::int64_t inner = of.sizes[0] * of.sizes[1] * of.sizes[2];
  Shape shape = in.shape;
  for (int d = 0; d < dims; ++d)
    shape[shape.size() - dims + d] = std::ssize(of.windows[to_index(3 - dims + d)]);
  computable_count(shape);
  std::vector<double> x = values<double>(in), out;
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < outer; ++i)
    for (const Window& a : of.windows[0])
      for (const Window& b : of.windows[1])
        for (const Window& c : of.windows[2]) {
          double best = -kInfinity;
          std::int64_t place = -1;
          for_each_in(of, a, b, c, [&](std::int64_t at) {
            double value = x[to_index(i * inner + at)];
            if (place < 0 || value > best || std::isnan(value)) best = value, place = at;
          });
          call.expect(place >= 0, "expected windows that are not empty");
          out.push_back(best);
          places.push_back(place);
        }
  return results(Array::of(in.dtype, shape, out), Array::of(DType::I64, shape, places));
}

template <int kDims>
ArrayResults max_pool(const LocalCall& call) {
  PoolWindows pool(call, kDims);
  return largest(call, kDims, [&](int d, std::int64_t n) { return pool.windows(d, n); });
}

template <int kDims>
ArrayResults adaptive_max_pool(const LocalCall& call) {
  std::vector<std::int64_t> sizes = spatial_sizes(call, "output_size", kDims);
  return largest(call, kDims,
                 [&](int d, std::int64_t n) { return adaptive_windows(n, sizes[to_index(d)]); });
}

constexpr std::array kMaxPoolingRows{
    OperatorRow{"max_pool1d_with_indices", max_pool<1>, 2},
    OperatorRow{"max_pool2d_with_indices", max_pool<2>, 2},
    OperatorRow{"max_pool3d_with_indices", max_pool<3>, 2},
    OperatorRow{"adaptive_max_pool1d", adaptive_max_pool<1>, 2},
    OperatorRow{"adaptive_max_pool2d", adaptive_max_pool<2>, 2},
    OperatorRow{"adaptive_max_pool3d", adaptive_max_pool<3>, 2},
};

}  // namespace

std::span<const OperatorRow> max_pooling_rows() { return kMaxPoolingRows; }

}  // namespace reshard::sim
