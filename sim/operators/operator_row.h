// SPDX-License-Identifier: BSD-3-Clause
// A row of the operators' table, and what a row's function is given.
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

// A call of one operator, with what asks for its parts. `name` is the row's.
struct LocalCall {
  std::string_view name;
  std::span<const ArrayArgument> arguments;
  const OpAttributes& attributes;
  const RandomStream& random;
  const OperatorRow* row;

  // InputError "NAME: what".
  [[noreturn]] void refuse(const std::string& what) const;
  void expect(bool holds, const char* what) const {
    if (!holds) refuse(what);
  }
  // The tensor at a position among the arguments: refused, or null, where there is none.
  const Array& tensor(std::size_t position) const;
  const Array* optional_tensor(std::size_t position) const;
  // A list argument; a single tensor is a list of one.
  const std::vector<const Array*>& list(std::size_t position) const;
  // As above, none of it null, at least one.
  const std::vector<const Array*>& full_list(std::size_t position) const;

  // -rank .. rank-1 (0-d as 1-d) to 0 .. rank-1.
  int dim_of(std::int64_t dim, int rank) const;
  int dim(std::string_view attribute, std::int64_t absent, int rank) const;
  // Attribute "dtype".
  std::optional<DType> dtype() const;
  // A number by name, or by a second name under which it is known.
  double number(std::string_view name, double absent) const;
};

using RunOperator = ArrayResults (*)(const LocalCall&);

// `outputs`: how many an out form has. A name with an overload is found before the bare one.
struct OperatorRow {
  std::string_view name;
  RunOperator run;
  int outputs = 1;
  Pointwise pointwise = {};
};

// One table a file.
std::span<const OperatorRow> attention_rows();
std::span<const OperatorRow> pointwise_gamma_rows();
std::span<const OperatorRow> batch_norm_rows();
std::span<const OperatorRow> binning_rows();
std::span<const OperatorRow> convolution_rows();
std::span<const OperatorRow> creation_rows();
std::span<const OperatorRow> cutting_rows();
std::span<const OperatorRow> einsum_rows();
std::span<const OperatorRow> embedding_rows();
std::span<const OperatorRow> grouped_rows();
std::span<const OperatorRow> indexing_rows();
std::span<const OperatorRow> joining_rows();
std::span<const OperatorRow> linalg_rows();
std::span<const OperatorRow> loss_rows();
std::span<const OperatorRow> matmul_rows();
std::span<const OperatorRow> max_pooling_rows();
std::span<const OperatorRow> norm_rows();
std::span<const OperatorRow> optimizer_rows();
std::span<const OperatorRow> ordering_rows();
std::span<const OperatorRow> pointwise_backward_rows();
std::span<const OperatorRow> pointwise_binary_rows();
std::span<const OperatorRow> pointwise_polynomial_rows();
std::span<const OperatorRow> pointwise_special_rows();
std::span<const OperatorRow> pointwise_ternary_rows();
std::span<const OperatorRow> pointwise_unary_rows();
std::span<const OperatorRow> random_rows();
std::span<const OperatorRow> reduction_rows();
std::span<const OperatorRow> resampling_rows();
std::span<const OperatorRow> scan_rows();
std::span<const OperatorRow> softmax_rows();
std::span<const OperatorRow> view_rows();

// A list of results, and lists with tensors that may be left out.
template <class... Arrays>
ArrayResults results(Arrays&&... arrays) {
  ArrayResults out;
  out.reserve(sizeof...(arrays));
  (out.emplace_back(std::forward<Arrays>(arrays)), ...);
  return out;
}

}  // namespace reshard::sim
