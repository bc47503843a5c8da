// SPDX-License-Identifier: BSD-3-Clause
// Diagonals, and what lies on one side of them; operators that write them back.
#include <algorithm>
#include <array>

#include "sim/operators/moving/shapes.h"
#include "sim/operators/rearranged.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

Array zeros_of(const LocalCall& call) {
  return Array::zeros(call.tensor(0).dtype,
                      shape_of(call, call.attributes.integers("input_sizes")));
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

constexpr std::array kDiagonalsRows{
    OperatorRow{"diagonal", diagonal},
    OperatorRow{"diagonal_backward", diagonal_scatter<true>},
    OperatorRow{"diagonal_scatter", diagonal_scatter<false>},
    OperatorRow{"diag_embed", diag_embed},
    OperatorRow{"diag", diag},
    OperatorRow{"tril", triangle<true>},
    OperatorRow{"triu", triangle<false>},
};

}  // namespace

std::span<const OperatorRow> diagonal_rows() { return kDiagonalsRows; }

}  // namespace reshard::sim
