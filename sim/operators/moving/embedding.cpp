// SPDX-License-Identifier: BSD-3-Clause
// Embedding: rows of a table by index; and its gradient.
#include <fmt/core.h>

#include <array>

#include "sim/operators/moving/shapes.h"

namespace reshard::sim {
namespace {

std::vector<std::int64_t> rows_of(const LocalCall& call, const Array& index, std::int64_t rows) {
  call.expect(!is_real(index.dtype), "expected an index of integers");
  std::vector<std::int64_t> out = values<std::int64_t>(index);
  for (std::int64_t row : out)
    if (row < 0 || row >= rows)
      call.refuse(fmt::format("expected indices from 0 to {}, found {}", rows - 1, row));
  return out;
}

ArrayResults embedding(const LocalCall& call) {
  const Array &weight = call.tensor(0), &index = call.tensor(1);
  call.expect(weight.shape.size() == 2, "expected a weight of 2 dims");
  std::vector<std::int64_t> rows = rows_of(call, index, weight.shape[0]);
  std::int64_t width = weight.shape[1];
  Array out = Array::zeros(weight.dtype, with_dim(call, index.shape, index.shape.size(), width));
  std::visit(
      [&](const auto& table) {
        auto to = std::get<std::decay_t<decltype(table)>>(out.elements).begin();
        for (std::int64_t row : rows) to = std::copy_n(table.begin() + row * width, width, to);
      },
      weight.elements);
  return results(std::move(out));
}

// Sums the rows of the gradient by index, except those of `padding_idx`. With `scale_grad_by_freq`
// divides by the number of occurrences of the index.
ArrayResults embedding_dense_backward(const LocalCall& call) {
  const Array &grad = call.tensor(0), &index = call.tensor(1);
  std::int64_t count = call.attributes.integer("num_weights"),
               padding = call.attributes.integer("padding_idx", -1);
  call.expect(count >= 0, "expected a num_weights from 0");
  call.expect(grad.shape.size() > 0, "expected a gradient of 1 dim at least");
  std::int64_t width = grad.shape[grad.shape.size() - 1];
  std::vector<std::int64_t> rows = rows_of(call, index, count);
  call.expect(grad.count() == index.count() * width, "expected a gradient row for each index");
  Shape shape{count, width};
  Array out = Array::zeros(grad.dtype, shape);
  std::vector<std::int64_t> times(to_index(count), 0);
  for (std::int64_t row : rows) ++times[to_index(row)];
  bool scales = call.attributes.boolean("scale_grad_by_freq", false);
  std::vector<double> from = values<double>(grad), to(to_index(out.count()), 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == padding) continue;
    double by = scales ? static_cast<double>(times[to_index(rows[i])]) : 1;
    for (std::int64_t k = 0; k < width; ++k)
      to[to_index(rows[i] * width + k)] += from[i * to_index(width) + to_index(k)] / by;
  }
  return results(Array::of(grad.dtype, shape, to));
}

constexpr std::array kEmbeddingRows{
    OperatorRow{"embedding", embedding},
    OperatorRow{"embedding_dense_backward", embedding_dense_backward},
};

}  // namespace

std::span<const OperatorRow> embedding_rows() { return kEmbeddingRows; }

}  // namespace reshard::sim
