// SPDX-License-Identifier: BSD-3-Clause
#include "sim/operators/images/windows.h"

#include <algorithm>

#include "core/ops/attributes.h"

namespace reshard::sim {
namespace {

std::vector<std::int64_t> per_dim(const LocalCall& call, const char* name, int dims,
                                  const std::vector<std::int64_t>& absent) {
  std::vector<std::int64_t> out =
      number_per_dim(call.attributes, name, to_index(dims), absent, true);
  for (std::int64_t number : out)
    call.expect(number >= 0 && number <= kMostPlaces, "expected numbers from 0 to 2^20");
  return out;
}

}  // namespace

std::int64_t outer_count(const LocalCall& call, const Shape& shape, int dims) {
  call.expect(shape.size() > dims, "expected a tensor of more dims than windows have");
  std::int64_t out = 1;
  for (int d = 0; d < shape.size() - dims; ++d) out *= shape[d];
  return out;
}

std::vector<std::int64_t> spatial_sizes(const LocalCall& call, const char* name, int dims) {
  std::vector<std::int64_t> out = per_dim(call, name, dims, {});
  for (std::int64_t size : out) call.expect(size > 0, "expected sizes of at least 1");
  return out;
}

std::vector<Window> adaptive_windows(std::int64_t length, std::int64_t count) {
  std::vector<Window> out;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t start = i * length / count, end = ((i + 1) * length + count - 1) / count;
    out.push_back({start, end, end - start});
  }
  return out;
}

PoolWindows::PoolWindows(const LocalCall& call, int dims)
    : call_(call),
      kernel_(per_dim(call, "kernel_size", dims, {})),
      stride_(per_dim(call, "stride", dims, kernel_)),
      padding_(per_dim(call, "padding", dims, {0})),
      dilation_(per_dim(call, "dilation", dims, {1})) {
  for (std::size_t d = 0; d < kernel_.size(); ++d)
    call.expect(
        kernel_[d] > 0 && stride_[d] > 0 && dilation_[d] > 0 && padding_[d] <= kernel_[d] / 2,
        "expected kernel, stride and dilation of at least 1, padding of half the kernel at most");
}

std::vector<Window> PoolWindows::windows(int dim, std::int64_t length) const {
  std::size_t d = to_index(dim);
  std::int64_t reach = dilation_[d] * (kernel_[d] - 1) + 1, room = length + 2 * padding_[d] - reach;
  call_.expect(room >= 0, "expected an input not smaller than the kernel");
  bool up = call_.attributes.boolean("ceil_mode", false);
  std::int64_t count = (room + (up ? stride_[d] - 1 : 0)) / stride_[d] + 1;
  if (up && (count - 1) * stride_[d] >= length + padding_[d]) --count;
  std::vector<Window> out;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t start = i * stride_[d] - padding_[d],
                 end = std::min(start + reach, length + padding_[d]), padded = end - start;
    while (start < 0) start += dilation_[d];
    out.push_back({start, std::max(start, std::min(end, length)), padded, dilation_[d]});
  }
  return out;
}

}  // namespace reshard::sim
