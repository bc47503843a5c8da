// SPDX-License-Identifier: BSD-3-Clause
// Parts of a tensor along one dim, along a diagonal, or on one side of a diagonal; and operators
// that write such parts back.
#include <fmt/format.h>

#include <algorithm>
#include <array>

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

// Pieces of equal size, the last one with the remainder; an empty dim has one empty piece.
std::vector<std::int64_t> pieces(const LocalCall& call, std::int64_t extent, std::int64_t size) {
  call.expect(size > 0 || (size == 0 && extent == 0), "expected a size above 0");
  std::vector<std::int64_t> out;
  for (std::int64_t at = 0; at < extent; at += size) out.push_back(std::min(size, extent - at));
  if (out.empty()) out.push_back(0);
  return out;
}

ArrayResults split(const LocalCall& call) {
  const Array& in = call.tensor(0);
  int dim = cut_dim(call, in);
  for (const char* name : {"split_sizes", "split_size"}) {
    const OpValue* value = call.attributes.find(name);
    if (!value || value->is_null()) continue;
    std::vector<std::int64_t> sizes = call.attributes.integers(name);
    if (value->kind != OpValue::Kind::List) sizes = pieces(call, in.shape[dim], sizes[0]);
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
  return split_into(call, in, dim, pieces(call, extent, (extent - 1) / chunks + 1));
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

std::int64_t index_in(const LocalCall& call, std::int64_t extent) {
  std::int64_t index = call.attributes.integer("index");
  if (index < -extent || index >= extent)
    call.refuse(
        fmt::format("expected an index from {} to {}, found {}", -extent, extent - 1, index));
  return index < 0 ? index + extent : index;
}

ArrayResults select(const LocalCall& call) {
  const Array& in = call.tensor(0);
  int dim = cut_dim(call, in);
  return results(selected(in, dim, index_in(call, in.shape[dim])));
}

// The indices of a dim that a slice takes.
struct Range {
  std::int64_t start, length, step;
};
Range range_of(const LocalCall& call, std::int64_t extent) {
  auto place = [&](const char* name, std::int64_t absent) {
    std::int64_t at = call.attributes.integer(name, absent);
    return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent);
  };
  std::int64_t start = place("start", 0), end = std::max(place("end", extent), start);
  std::int64_t step = call.attributes.integer("step", 1);
  call.expect(step > 0, "expected a step above 0");
  return {start, end == start ? 0 : (end - start - 1) / step + 1, std::min(step, extent + 1)};
}

ArrayResults slice(const LocalCall& call) {
  const Array& in = call.tensor(0);
  int dim = cut_dim(call, in);
  Range range = range_of(call, in.shape[dim]);
  return results(narrowed(in, dim, range.start, range.length, range.step));
}

ArrayResults narrow(const LocalCall& call) {
  const Array& in = call.tensor(0);
  int dim = cut_dim(call, in);
  std::int64_t start = call.attributes.integer("start", 0), extent = in.shape[dim];
  std::int64_t length = call.attributes.integer("length");
  if (start < 0) start += extent;
  call.expect(start >= 0 && length >= 0 && start <= extent && length <= extent - start,
              "expected a range within the dim");
  return results(narrowed(in, dim, start, length));
}

// `whole` with `part` in a range of a dim.
Array with_range(const LocalCall& call, Array whole, const Array& part, int dim, Range range) {
  Shape shape = whole.shape;
  shape[dim] = range.length;
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
  Range range = range_of(call, whole.shape[dim]);
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
  Range range{index_in(call, whole.shape[dim]), 1, 1};
  return results(with_range(call, whole, reshaped(part, shape), dim, range));
}

// The offset of a diagonal from the main one.
std::int64_t diagonal_at(const LocalCall& call, const char* name) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  return std::clamp(call.attributes.integer(name, 0), -kMost, kMost);
}

// A diagonal as a strided view; the diagonal is the last dim of the view.
struct Diagonal {
  Shape shape;
  DimVector strides;
  std::int64_t offset = 0;
};
Diagonal diagonal_of(const LocalCall& call, const Shape& shape, std::int64_t first,
                     std::int64_t second) {
  int rank = shape.size();
  call.expect(rank >= 2, "expected a tensor of 2 dims at least");
  int a = call.dim_of(call.attributes.integer("dim1", first), rank),
      b = call.dim_of(call.attributes.integer("dim2", second), rank);
  call.expect(a != b, "expected two dims, found one twice");
  std::int64_t by = diagonal_at(call, "offset");
  DimVector strides = dense_strides(shape);
  Diagonal out;
  for (int d = 0; d < rank; ++d)
    if (d != a && d != b) out.shape.push_back(shape[d]), out.strides.push_back(strides[d]);
  std::int64_t down = std::max<std::int64_t>(-by, 0), right = std::max<std::int64_t>(by, 0);
  out.shape.push_back(std::max<std::int64_t>(std::min(shape[a] - down, shape[b] - right), 0));
  out.strides.push_back(strides[a] + strides[b]);
  if (out.shape[out.shape.size() - 1] > 0) out.offset = down * strides[a] + right * strides[b];
  return out;
}

ArrayResults diagonal(const LocalCall& call) {
  Diagonal of = diagonal_of(call, call.tensor(0).shape, 0, 1);
  return results(viewed(call.tensor(0), of.shape, of.strides, of.offset));
}

template <bool kBackward>
ArrayResults diagonal_scatter(const LocalCall& call) {
  Array whole = kBackward ? zeros_of(call) : call.tensor(0);
  const Array& part = call.tensor(kBackward ? 0 : 1);
  Diagonal of = diagonal_of(call, whole.shape, 0, 1);
  call.expect(part.shape == of.shape, "expected a part of the diagonal's shape");
  write_view(whole, cast(part, whole.dtype), of.strides, of.offset);
  return results(std::move(whole));
}

Array embedded(const LocalCall& call) {
  const Array& in = call.tensor(0);
  call.expect(in.shape.size() > 0, "expected a tensor of 1 dim at least");
  int rank = in.shape.size() + 1;
  std::int64_t by = diagonal_at(call, call.attributes.has("diagonal") ? "diagonal" : "offset");
  std::int64_t extent = in.shape[rank - 2] + (by < 0 ? -by : by);
  int a = call.dim_of(call.attributes.integer("dim1", -2), rank),
      b = call.dim_of(call.attributes.integer("dim2", -1), rank);
  call.expect(a != b, "expected two dims, found one twice");
  Shape shape = with_dim(call, in.shape, rank - 1, extent);
  for (int d = 0, next = 0; d < rank; ++d) shape[d] = d == a || d == b ? extent : in.shape[next++];
  Array out = Array::zeros(in.dtype, shape);
  OpAttributes attributes = call.attributes;
  attributes.set("offset", OpValue(by));
  Diagonal of =
      diagonal_of({call.name, call.arguments, attributes, call.random, call.row}, shape, -2, -1);
  write_view(out, in, of.strides, of.offset);
  return out;
}
ArrayResults diag_embed(const LocalCall& call) { return results(embedded(call)); }

ArrayResults diag(const LocalCall& call) {
  const Array& in = call.tensor(0);
  call.expect(in.shape.size() == 1 || in.shape.size() == 2, "expected a vector or a matrix");
  if (in.shape.size() == 1) return results(embedded(call));
  OpAttributes attributes = call.attributes;
  attributes.set("offset", OpValue(call.attributes.integer("diagonal", 0)));
  return diagonal({call.name, call.arguments, attributes, call.random, call.row});
}

// Keeps the elements on one side of a diagonal of the last two dims, and the diagonal; the others
// become zero.
template <bool kLower>
ArrayResults triangle(const LocalCall& call) {
  Array out = call.tensor(0);
  int rank = out.shape.size();
  call.expect(rank >= 2, "expected a tensor of 2 dims at least");
  std::int64_t by = call.attributes.integer("diagonal", 0), columns = out.shape[rank - 1],
               rows = out.shape[rank - 2];
  std::visit(
      [&](auto& elements) {
        for (std::int64_t i = 0; i < std::ssize(elements); ++i) {
          std::int64_t row = i / columns % rows, column = i % columns;
          if (kLower ? column - row > by : column - row < by) elements[to_index(i)] = 0;
        }
      },
      out.elements);
  return results(std::move(out));
}

constexpr std::array kRows{
    OperatorRow{"split", split},
    OperatorRow{"split_with_sizes", split},
    OperatorRow{"unsafe_split", split},
    OperatorRow{"unsafe_split_with_sizes", split},
    OperatorRow{"chunk", chunk},
    OperatorRow{"unsafe_chunk", chunk},
    OperatorRow{"unbind", unbind},
    OperatorRow{"select", select},
    OperatorRow{"slice", slice},
    OperatorRow{"narrow", narrow},
    OperatorRow{"slice_backward", slice_scatter<true>},
    OperatorRow{"slice_scatter", slice_scatter<false>},
    OperatorRow{"select_backward", select_scatter<true>},
    OperatorRow{"select_scatter", select_scatter<false>},
    OperatorRow{"diagonal", diagonal},
    OperatorRow{"diagonal_backward", diagonal_scatter<true>},
    OperatorRow{"diagonal_scatter", diagonal_scatter<false>},
    OperatorRow{"diag_embed", diag_embed},
    OperatorRow{"diag", diag},
    OperatorRow{"tril", triangle<true>},
    OperatorRow{"triu", triangle<false>},
};

}  // namespace

std::span<const OperatorRow> cutting_rows() { return kRows; }

}  // namespace reshard::sim
