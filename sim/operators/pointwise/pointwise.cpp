// SPDX-License-Identifier: BSD-3-Clause
#include "sim/operators/pointwise/pointwise.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/errors.h"
#include "sim/operators/strided.h"

namespace reshard::sim {
namespace {

// 0: bool, 1: integer, 2: floating.
int category(DType dtype) { return dtype == DType::Bool ? 0 : is_integer(dtype) ? 1 : 2; }

// The wider of two signed integers. u8 with a signed integer gives that one, but at least i16.
DType promoted_integers(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::U8 || b == DType::U8) {
    DType other = a == DType::U8 ? b : a;
    return other == DType::I8 ? DType::I16 : other;
  }
  return std::min(a, b);  // I64, I32, I16, I8
}

// 1: scalars, 2: 0-d tensors, 3: tensors with dims.
int priority(const Term& term) { return !term.array ? 1 : term.array->shape.size() == 0 ? 2 : 3; }

DType dtype_of(const Term& term) {
  if (term.array) return term.array->dtype;
  return term.scalar_kind == DType::F64 ? DType::F32 : term.scalar_kind;
}

template <class T>
T scalar_as(const Term& term, DType dtype) {
  double number = term.scalar_kind == DType::F64 ? term.number : static_cast<double>(term.integer);
  if constexpr (std::is_integral_v<T>) {
    return term.scalar_kind == DType::F64 ? number_as<T>(number) : term.integer;
  } else {
    return dtype == DType::F64 ? number : static_cast<double>(static_cast<float>(number));
  }
}

// The operand's elements, broadcast to the shape of the result.
template <class T>
std::vector<T> operand(const Term& term, DType dtype, const Shape& shape, std::int64_t count) {
  if (!term.array) return std::vector<T>(to_index(count), scalar_as<T>(term, dtype));
  const Array& array = *term.array;
  bool rounds = is_real(dtype) && dtype != DType::F64 && array.dtype != dtype &&
                !std::holds_alternative<std::vector<float>>(array.elements);
  std::vector<T> own = values<T>(rounds ? cast(array, DType::F32) : array);
  if (array.shape == shape) return own;
  if (own.size() == 1) return std::vector<T>(to_index(count), own[0]);
  DimVector strides(shape.size(), 0), dense = dense_strides(array.shape);
  int first = shape.size() - array.shape.size();
  for (int d = 0; d < array.shape.size(); ++d)
    if (array.shape[d] != 1) strides[first + d] = dense[d];
  return strided_copy(own, shape, strides);
}

template <class T>
Array evaluate_in(const Pointwise& op, PointwiseLoop<T> loop, std::span<const Term> terms,
                  std::span<const double> parameters, DType computing, const Shape& shape) {
  std::int64_t count = element_count(shape);
  std::array<std::vector<T>, kMaxOperands> operands;
  std::array<const T*, kMaxOperands> starts{};
  for (std::size_t i = 0; i < terms.size(); ++i) {
    operands[i] = operand<T>(terms[i], computing, shape, count);
    starts[i] = operands[i].data();
  }
  std::array<T, kMaxParameters> fixed{};
  for (std::size_t i = 0; i < parameters.size(); ++i)
    fixed[i] = scalar_as<T>(Term{nullptr, DType::F64, parameters[i], 0}, computing);
  std::vector<T> out(to_index(count));
  loop(starts.data(), fixed.data(), out.data(), count);
  return Array::of(op.promotion == Promotion::Truth ? DType::Bool : computing, shape,
                   std::move(out));
}

}  // namespace

DType promoted(DType a, DType b) {
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (category(a) == 0) return a;
  if (category(a) == 1) return promoted_integers(a, b);
  if (a == b) return a;
  if (a == DType::F64 || b == DType::F64) return DType::F64;
  return DType::F32;  // also for f16 with bf16
}

DType common_dtype(std::span<const Term> terms) {
  std::optional<DType> out;
  for (int level = 3; level > 0; --level) {
    std::optional<DType> here;
    for (const Term& term : terms)
      if (priority(term) == level) here = here ? promoted(*here, dtype_of(term)) : dtype_of(term);
    if (here && (!out || category(*here) > category(*out))) out = here;
  }
  RESHARD_CHECK(out, "no operand");
  return *out;
}

Shape broadcast(const LocalCall& call, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const Shape &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  Shape out = longer;
  int first = longer.size() - shorter.size();
  for (int d = 0; d < shorter.size(); ++d) {
    std::int64_t extent = shorter[d];
    if (out[first + d] == 1) out[first + d] = extent;
    if (extent != 1 && extent != out[first + d])
      call.refuse(
          fmt::format("expected shapes that broadcast, found [{}] and [{}]", text(a), text(b)));
  }
  computable_count(out);
  return out;
}

Array broadcast_to(const LocalCall& call, const Array& array, const Shape& shape) {
  if (array.shape == shape) return array;
  if (broadcast(call, array.shape, shape) != shape)
    call.refuse(fmt::format("expected a tensor that expands to [{}], found [{}]", text(shape),
                            text(array.shape)));
  return visit_computing(array.dtype, [&](auto t) {
    using T = decltype(t);
    return Array::of(array.dtype, shape,
                     operand<T>(Term{&array}, array.dtype, shape, element_count(shape)));
  });
}

Term term_of(const LocalCall& call, const char* name, std::size_t& position) {
  const OpValue* value = call.attributes.find(name);
  if (!value || value->is_null()) return Term{&call.tensor(position++)};
  switch (value->kind) {
    case OpValue::Kind::Boolean:
      return Term{nullptr, DType::Bool, 0, value->integer};
    case OpValue::Kind::Integer:
      return Term{nullptr, DType::I64, 0, value->integer};
    default:
      return Term{nullptr, DType::F64, call.attributes.number(name), 0};
  }
}

Array evaluate(const LocalCall& call, const Pointwise& op) {
  std::array<Term, kMaxOperands> found;
  std::size_t position = 0;
  for (int i = 0; i < op.operand_count; ++i)
    found[to_index(i)] = term_of(call, op.operands[to_index(i)], position);
  for (std::size_t i = position; i < call.arguments.size(); ++i)
    if (call.arguments[i].is_list || call.optional_tensor(i))
      call.refuse(fmt::format("expected {} tensors, found {}", position, call.arguments.size()));
  std::span<const Term> terms(found.data(), to_index(op.operand_count));
  DType computing = op.promotion == Promotion::Double ? DType::F64 : common_dtype(terms);
  if (op.promotion == Promotion::Floating && !is_real(computing)) computing = DType::F32;
  Shape shape;
  for (const Term& term : terms)
    if (term.array) shape = broadcast(call, shape, term.array->shape);
  std::array<double, kMaxParameters> parameters{};
  for (std::size_t i = 0; i < to_index(op.parameter_count); ++i)
    parameters[i] = call.number(op.parameters[i].name, op.parameters[i].absent);
  std::span<const double> fixed(parameters.data(), to_index(op.parameter_count));
  if (is_real(computing)) {
    call.expect(op.real, "expected integers or bool, found floating tensors");
    return evaluate_in<double>(op, op.real, terms, fixed, computing, shape);
  }
  call.expect(op.whole, "expected floating tensors, found integers or bool");
  return evaluate_in<std::int64_t>(op, op.whole, terms, fixed, computing, shape);
}

ArrayResults run_pointwise(const LocalCall& call) {
  return results(evaluate(call, call.row->pointwise));
}

Array evaluate_with(const LocalCall& call, const Pointwise& op,
                    std::initializer_list<const Array*> tensors) {
  std::vector<ArrayArgument> arguments;
  for (const Array* tensor : tensors) arguments.push_back({false, {tensor}});
  return evaluate({call.name, arguments, call.attributes, call.random, call.row}, op);
}

}  // namespace reshard::sim
