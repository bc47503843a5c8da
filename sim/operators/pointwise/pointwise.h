// SPDX-License-Identifier: BSD-3-Clause
// Evaluates pointwise operators: operands found, promoted, broadcast.
#pragma once

#include <initializer_list>

#include "sim/operators/operator_row.h"

namespace reshard::sim {

// A tensor, or a scalar where there is none: of kind Bool, I64 or F64, of which only one number is
// set.
struct Term {
  const Array* array = nullptr;
  DType scalar_kind = DType::F64;
  double number = 0;
  std::int64_t integer = 0;
};

// PyTorch's result type: tensors with dims before 0-d ones before scalars, each only where its kind
// (bool, integer, floating) is above what is there.
DType common_dtype(std::span<const Term> terms);
DType promoted(DType a, DType b);

Shape broadcast(const LocalCall& call, const Shape& a, const Shape& b);
// Its elements repeated to a shape that it broadcasts to.
Array broadcast_to(const LocalCall& call, const Array& array, const Shape& shape);

// The operand called `name`: a scalar where an attribute is so called, else the tensor at
// `position`, which then moves on.
Term term_of(const LocalCall& call, const char* name, std::size_t& position);

Array evaluate(const LocalCall& call, const Pointwise& op);
ArrayResults run_pointwise(const LocalCall& call);  // of the call's row

// The operator of another one's call, its tensors given here.
Array evaluate_with(const LocalCall& call, const Pointwise& op,
                    std::initializer_list<const Array*> tensors);

constexpr OperatorRow row(std::string_view name, const Pointwise& op) {
  return {name, run_pointwise, 1, op};
}

}  // namespace reshard::sim
