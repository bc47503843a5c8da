// SPDX-License-Identifier: BSD-3-Clause
// Products of scaled matrices, and grouped products. Offsets are the ends of the groups' parts of a
// dim; results that belong to no group are 0.
#include <algorithm>
#include <array>

#include "sim/operators/pointwise/pointwise.h"
#include "sim/operators/products/product.h"
#include "sim/operators/rearranged.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

DType dtype_of(const LocalCall& call, DType absent) {
  if (!call.attributes.has("out_dtype")) return absent;
  return parse_dtype(call.attributes.text("out_dtype", ""));
}

// Multiplies each element by its scale: one for all, one per row, or one per column.
std::vector<double> scaled(const LocalCall& call, const Array& matrix, const Array& scale) {
  call.expect(matrix.shape.size() == 2, "expected matrices");
  call.expect(scale.count() == 1 || scale.shape.size() == 2,
              "expected a scale, or one a row or column");
  Array one = scale.count() == 1 ? reshaped(scale, {1, 1}) : scale;
  std::vector<double> out = values<double>(matrix),
                      by = values<double>(broadcast_to(call, one, matrix.shape));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] *= by[i];
  return out;
}

ArrayResults scaled_product(const LocalCall& call) {
  const Array &a = call.tensor(0), &b = call.tensor(1);
  call.expect(!call.optional_tensor(4) && !call.optional_tensor(5),
              "expected no bias, and no scale of the result");
  std::vector<double> left = scaled(call, a, call.tensor(2)),
                      right = scaled(call, b, call.tensor(3));
  call.expect(a.shape[1] == b.shape[0], "expected matrices that fit");
  Shape shape{a.shape[0], b.shape[1]};
  std::vector<double> out(to_index(computable_count(shape)), 0);
  add_product(left.data(), right.data(), a.shape[0], a.shape[1], b.shape[1], out.data());
  return results(Array::of(dtype_of(call, a.dtype), shape, out));
}

// The part of a dim that belongs to a group.
struct GroupRange {
  std::int64_t start, end;
};

std::vector<GroupRange> parts(const Array* offsets, std::int64_t length) {
  std::vector<GroupRange> out;
  std::int64_t start = 0;
  for (std::int64_t offset :
       offsets ? values<std::int64_t>(*offsets) : std::vector<std::int64_t>{}) {
    std::int64_t end = std::clamp<std::int64_t>(offset, 0, length);
    out.push_back({start, std::max(start, end)});
    start = end;
  }
  return out;
}

// The matrix of one group: rows or columns of a whole matrix, or one matrix of a batch.
Array group_of(const Array& array, std::size_t group, int cut, const GroupRange& part) {
  if (array.shape.size() == 2) return narrowed(array, cut, part.start, part.end - part.start);
  return reshaped(narrowed(array, 0, static_cast<std::int64_t>(group), 1),
                  {array.shape[1], array.shape[2]});
}

ArrayResults grouped_product(const LocalCall& call) {
  const Array &a = call.tensor(0), &b = call.tensor(1), *offsets = call.optional_tensor(2);
  int left = a.shape.size(), right = b.shape.size();
  call.expect((left == 2 || left == 3) && (right == 2 || right == 3) &&
                  (offsets != nullptr) == (left + right < 6) && !call.optional_tensor(3),
              "expected matrices of 2 or 3 dims, offsets where one has 2, no bias");
  call.expect(left != 2 || right != 2 || a.shape[1] == b.shape[0], "expected matrices that fit");
  call.expect(left != 3 || right != 3 || a.shape[0] == b.shape[0],
              "expected as many matrices on both sides");
  // The dim that offsets cut: rows of the left matrix, columns of the right one, or the contracted
  // dim.
  int cut_left = right == 3 ? 0 : 1, cut_right = left == 3 ? 1 : 0;
  std::int64_t groups = left == 3 ? a.shape[0] : right == 3 ? b.shape[0] : offsets->count();
  std::int64_t rows = a.shape[left - 2], columns = b.shape[right - 1];
  std::vector<GroupRange> of = parts(offsets, left == 2 ? a.shape[cut_left] : b.shape[cut_right]);
  call.expect(!offsets || std::ssize(of) == groups, "expected an offset for each group");
  of.resize(to_index(groups), {0, 0});
  bool apart = left == right;  // the result has one matrix per group
  Array out = Array::zeros(dtype_of(call, a.dtype),
                           apart ? Shape{groups, rows, columns} : Shape{rows, columns});
  for (std::size_t i = 0; i < to_index(groups); ++i) {
    Array x = group_of(a, i, cut_left, of[i]), y = group_of(b, i, cut_right, of[i]);
    call.expect(x.shape[1] == y.shape[0], "expected matrices that fit");
    std::vector<double> made(to_index(x.shape[0] * y.shape[1]), 0);
    add_product(values<double>(x).data(), values<double>(y).data(), x.shape[0], x.shape[1],
                y.shape[1], made.data());
    std::int64_t start = apart       ? static_cast<std::int64_t>(i) * rows * columns
                         : left == 2 ? of[i].start * columns
                                     : of[i].start;
    write_view(out, Array::of(out.dtype, {x.shape[0], y.shape[1]}, made), {columns, 1}, start);
  }
  return results(std::move(out));
}

constexpr std::array kGroupedRows{
    OperatorRow{"_scaled_mm", scaled_product},
    OperatorRow{"_grouped_mm", grouped_product},
};

}  // namespace

std::span<const OperatorRow> grouped_rows() { return kGroupedRows; }

}  // namespace reshard::sim
