// SPDX-License-Identifier: BSD-3-Clause
// Operators that no shipped trace and no recorded model calls: the program leaves their values out,
// and the tests compute them, so that the rules of these operators are held, too.
#pragma once

#include "sim/operators/operator_row.h"

namespace reshard::sim {

// Adds all tables below to those that compute() knows. For a variable of a test program, so that it
// is done before its tests:
//
//   const bool kRare = add_rare_rows();
bool add_rare_rows();

std::span<const OperatorRow> choosing_rows();
std::span<const OperatorRow> diagonal_rows();
std::span<const OperatorRow> einsum_rows();
std::span<const OperatorRow> extreme_rows();
std::span<const OperatorRow> fourier_rows();
std::span<const OperatorRow> grouped_rows();
std::span<const OperatorRow> linalg_rows();
std::span<const OperatorRow> max_unpooling_rows();
std::span<const OperatorRow> optimizer_rows();
std::span<const OperatorRow> padding_rows();
std::span<const OperatorRow> pair_loss_rows();
std::span<const OperatorRow> pointwise_gamma_rows();
std::span<const OperatorRow> pointwise_polynomial_rows();
std::span<const OperatorRow> pointwise_special_rows();
std::span<const OperatorRow> rare_backward_rows();
std::span<const OperatorRow> rare_binary_rows();
std::span<const OperatorRow> rare_unary_rows();
std::span<const OperatorRow> rare_view_rows();
std::span<const OperatorRow> resampling_rows();
std::span<const OperatorRow> scan_rows();

}  // namespace reshard::sim
