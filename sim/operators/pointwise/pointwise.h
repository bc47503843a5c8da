// SPDX-License-Identifier: BSD-3-Clause
// Evaluates pointwise operators: finds, promotes and broadcasts the operands.
#pragma once

#include <initializer_list>

#include "sim/operators/operator_row.h"

namespace reshard::sim {

// A tensor, or if `array` is null a scalar. F64 uses `number`, Bool and I64 use `integer`.
struct Term {
  const Array* array = nullptr;
  DType scalar_kind = DType::F64;
  double number = 0;
  std::int64_t integer = 0;
};

// PyTorch's result type: that of the tensors with dims; 0-d tensors, and then scalars, only change
// it if their category (bool < integer < floating) is higher.
DType common_dtype(std::span<const Term> terms);
DType promoted(DType a, DType b);

Shape broadcast(const LocalCall& call, const Shape& a, const Shape& b);
// Repeats the elements to a shape that the array broadcasts to.
Array broadcast_to(const LocalCall& call, const Array& array, const Shape& shape);

// The operand `name`: a scalar if there is an attribute of that name, else the tensor at
// `position`, which is then incremented.
Term term_of(const LocalCall& call, const char* name, std::size_t& position);

Array evaluate(const LocalCall& call, const Pointwise& op);
ArrayResults run_pointwise(const LocalCall& call);  // the operator of the call's row

// Evaluates an operator on the given tensors with the attributes of the call.
Array evaluate_with(const LocalCall& call, const Pointwise& op,
                    std::initializer_list<const Array*> tensors);

constexpr OperatorRow row(std::string_view name, const Pointwise& op) {
  return {name, run_pointwise, 1, op};
}

}  // namespace reshard::sim
