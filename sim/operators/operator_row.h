// SPDX-License-Identifier: BSD-3-Clause
// A row of the table of operators, and the argument of its function.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/operators/operators.h"
#include "sim/operators/pointwise/pointwise_loop.h"

namespace reshard::sim {

// A call of one operator, with checked access to its arguments. `name` is that of the row.
struct LocalCall {
  std::string_view name;
  std::span<const ArrayArgument> arguments;
  const OpAttributes& attributes;
  const RandomStream& random;
  const OperatorRow* row;

  // Throws InputError "NAME: what".
  [[noreturn]] void refuse(const std::string& what) const;
  void expect(bool holds, const char* what) const {
    if (!holds) refuse(what);
  }
  // The tensor argument at a position. If there is none, tensor() throws InputError and
  // optional_tensor() returns null.
  const Array& tensor(std::size_t position) const;
  const Array* optional_tensor(std::size_t position) const;
  // A list argument; a single tensor counts as a list of one.
  const std::vector<const Array*>& list(std::size_t position) const;
  // The same, with at least one tensor and none of them null.
  const std::vector<const Array*>& full_list(std::size_t position) const;

  // Converts a dim from -rank .. rank-1 to 0 .. rank-1; 0-d tensors count as 1-d.
  int dim_of(std::int64_t dim, int rank) const;
  int dim(std::string_view attribute, std::int64_t absent, int rank) const;
  DType dtype_or(DType absent) const;  // attribute "dtype"
  // A number attribute; `absent` if it is not given.
  double number(std::string_view name, double absent) const;
};

using RunOperator = ArrayResults (*)(const LocalCall&);

// `outputs`: how many tensors an out form writes. A row with the call's overload in its name is
// found before one without an overload. A row "NAME.c64" takes or makes complex numbers.
struct OperatorRow {
  std::string_view name;
  RunOperator run;
  int outputs = 1;
  Pointwise pointwise = {};
};

// The tables, one per file.
std::span<const OperatorRow> attention_rows();
std::span<const OperatorRow> batch_norm_rows();
std::span<const OperatorRow> binning_rows();
std::span<const OperatorRow> convolution_rows();
std::span<const OperatorRow> creation_rows();
std::span<const OperatorRow> cutting_rows();
std::span<const OperatorRow> embedding_rows();
std::span<const OperatorRow> indexing_rows();
std::span<const OperatorRow> joining_rows();
std::span<const OperatorRow> loss_rows();
std::span<const OperatorRow> matmul_rows();
std::span<const OperatorRow> max_pooling_rows();
std::span<const OperatorRow> norm_rows();
std::span<const OperatorRow> ordering_rows();
std::span<const OperatorRow> pointwise_backward_rows();
std::span<const OperatorRow> pointwise_binary_rows();
std::span<const OperatorRow> pointwise_ternary_rows();
std::span<const OperatorRow> pointwise_unary_rows();
std::span<const OperatorRow> random_rows();
std::span<const OperatorRow> reduction_rows();
std::span<const OperatorRow> softmax_rows();
std::span<const OperatorRow> view_rows();

// Adds rows to these tables. Only test programs call it, before they compute anything, for
// operators that the program itself does not compute (tests/support/operators). Throws CheckFailure
// for a row that already exists.
void add_operator_rows(std::span<const OperatorRow> rows);
// The row of exactly this name; null if there is none.
const OperatorRow* find_row(std::string_view name);

// Makes a list of results.
template <class... Arrays>
ArrayResults results(Arrays&&... arrays) {
  ArrayResults out;
  out.reserve(sizeof...(arrays));
  (out.emplace_back(std::forward<Arrays>(arrays)), ...);
  return out;
}

}  // namespace reshard::sim
