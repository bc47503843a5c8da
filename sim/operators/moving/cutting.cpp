// SPDX-License-Identifier: BSD-3-Clause
// Parts of a tensor along one dim, and operators that write such parts back.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/base/integers.h"
#include "core/ops/attributes.h"
#include "sim/operators/moving/shapes.h"
#include "sim/operators/rearranged.h"

namespace reshard::sim {
namespace {

int cut_dim(const LocalCall& call, const Array& in) {
  call.expect(in.shape.size() > 0, "expected a tensor of 1 dim at least");
  return call.dim("dim", 0, in.shape.size());
}

ArrayResults split_into(const LocalCall& call, const Array& in, int dim,
                        const std::vector<std::int64_t>& sizes) {
  ArrayResults out;
  std::int64_t start = 0;
  for (std::int64_t size : sizes) {
    call.expect(size >= 0 && size <= in.shape[dim] - start,
                "expected sizes that add up to the dim's");
    out.emplace_back(narrowed(in, dim, start, size));
    start += size;
  }
  call.expect(start == in.shape[dim], "expected sizes that add up to the dim's");
  return out;
}

ArrayResults split(const LocalCall& call) {
  const Array& in = call.tensor(0);
  int dim = cut_dim(call, in);
  for (const char* name : {"split_sizes", "split_size"}) {
    const OpValue* value = call.attributes.find(name);
    if (!value || value->is_null()) continue;
    std::vector<std::int64_t> sizes = call.attributes.integers(name);
    if (value->kind != OpValue::Kind::List) {
      bool is_nothing = in.shape[dim] == 0 && sizes[0] == 0;  // PyTorch takes that
      sizes = pieces_of(in.shape[dim], is_nothing ? 1 : sizes[0]);
    }
    return split_into(call, in, dim, sizes);
  }
  call.refuse("expected split_size or split_sizes");
}

ArrayResults chunk(const LocalCall& call) {
  const Array& in = call.tensor(0);
  int dim = cut_dim(call, in);
  std::int64_t chunks = call.attributes.integer("chunks"), extent = in.shape[dim];
  call.expect(chunks > 0 && chunks <= (1 << 20), "expected a number of chunks above 0");
  if (extent == 0) return split_into(call, in, dim, std::vector<std::int64_t>(to_index(chunks), 0));
  return split_into(call, in, dim, pieces_of(extent, ceil_div(extent, chunks)));
}

Array selected(const Array& in, int dim, std::int64_t index) {
  Array out = narrowed(in, dim, index, 1);
  Shape shape;
  for (int d = 0; d < in.shape.size(); ++d)
    if (d != dim) shape.push_back(in.shape[d]);
  return reshaped(std::move(out), shape);
}

ArrayResults unbind(const LocalCall& call) {
  const Array& in = call.tensor(0);
  int dim = cut_dim(call, in);
  ArrayResults out;
  for (std::int64_t i = 0; i < in.shape[dim]; ++i) out.emplace_back(selected(in, dim, i));
  return out;
}

ArrayResults select(const LocalCall& call) {
  const Array& in = call.tensor(0);
  int dim = cut_dim(call, in);
  return results(selected(in, dim, index_in_dim(call.attributes, in.shape[dim])));
}

// Also narrow.
ArrayResults slice(const LocalCall& call) {
  const Array& in = call.tensor(0);
  int dim = cut_dim(call, in);
  DimSlice range = slice_in_dim(call.attributes, in.shape[dim]);
  return results(narrowed(in, dim, range.start, range.count(), range.step));
}

// `whole` with `part` in a range of a dim.
Array with_range(const LocalCall& call, Array whole, const Array& part, int dim, DimSlice range) {
  Shape shape = whole.shape;
  shape[dim] = range.count();
  if (part.shape != shape)
    call.refuse(fmt::format("expected a part of [{}], found [{}]", text(shape), text(part.shape)));
  DimVector strides = dense_strides(whole.shape);
  std::int64_t offset = range.start * strides[dim];
  strides[dim] *= range.step;
  write_view(whole, cast(part, whole.dtype), strides, offset);
  return whole;
}

Array zeros_of(const LocalCall& call) {
  return Array::zeros(call.tensor(0).dtype,
                      shape_of(call, call.attributes.integers("input_sizes")));
}

// Writes a part into the first tensor; the backward form writes it into zeros.
template <bool kBackward>
ArrayResults slice_scatter(const LocalCall& call) {
  Array whole = kBackward ? zeros_of(call) : call.tensor(0);
  int dim = cut_dim(call, whole);
  DimSlice range = slice_in_dim(call.attributes, whole.shape[dim]);
  return results(with_range(call, whole, call.tensor(kBackward ? 0 : 1), dim, range));
}

template <bool kBackward>
ArrayResults select_scatter(const LocalCall& call) {
  Array whole = kBackward ? zeros_of(call) : call.tensor(0);
  int dim = cut_dim(call, whole);
  const Array& part = call.tensor(kBackward ? 0 : 1);
  Shape shape = whole.shape;
  shape[dim] = 1;
  call.expect(part.shape.size() + 1 == shape.size() && part.count() == element_count(shape),
              "expected a part of the whole without that dim");
  std::int64_t index = index_in_dim(call.attributes, whole.shape[dim]);
  return results(with_range(call, whole, reshaped(part, shape), dim, {index, index + 1, 1}));
}

constexpr std::array kCuttingRows{
    OperatorRow{"split", split},
    OperatorRow{"split_with_sizes", split},
    OperatorRow{"unsafe_split", split},
    OperatorRow{"unsafe_split_with_sizes", split},
    OperatorRow{"chunk", chunk},
    OperatorRow{"unsafe_chunk", chunk},
    OperatorRow{"unbind", unbind},
    OperatorRow{"select", select},
    OperatorRow{"slice", slice},
    OperatorRow{"narrow", slice},
    OperatorRow{"slice_backward", slice_scatter<true>},
    OperatorRow{"slice_scatter", slice_scatter<false>},
    OperatorRow{"select_backward", select_scatter<true>},
    OperatorRow{"select_scatter", select_scatter<false>},
};

}  // namespace

std::span<const OperatorRow> cutting_rows() { return kCuttingRows; }

}  // namespace reshard::sim
