// SPDX-License-Identifier: BSD-3-Clause
// Tensors created like another one: constants, and copies in the same or another dtype.
#include <array>

#include "sim/operators/moving/shapes.h"
#include "sim/operators/pointwise/pointwise.h"

namespace reshard::sim {
namespace {

Array filled(const LocalCall& call, const Shape& shape, const Term& value) {
  DType dtype = call.dtype_or(call.tensor(0).dtype);
  if (!Array::zeros(dtype, shape).count()) return Array::zeros(dtype, shape);
  std::size_t count = to_index(element_count(shape));
  if (value.scalar_kind == DType::F64)
    return Array::of(dtype, shape, std::vector<double>(count, value.number));
  return Array::of(dtype, shape, std::vector<std::int64_t>(count, value.integer));
}

Shape size_of(const LocalCall& call, bool is_like) {
  return is_like ? call.tensor(0).shape : shape_of(call, call.attributes.integers("size"));
}

template <bool kIsLike, int kValue>
ArrayResults constant(const LocalCall& call) {
  return results(filled(call, size_of(call, kIsLike), Term{nullptr, DType::I64, 0, kValue}));
}

template <bool kIsLike>
ArrayResults full(const LocalCall& call) {
  std::size_t position = 1;
  call.expect(call.attributes.has("fill_value"), "expected a fill_value");
  return results(filled(call, size_of(call, kIsLike), term_of(call, "fill_value", position)));
}

ArrayResults fill(const LocalCall& call) {
  std::size_t position = 1;
  Term value = term_of(call, "value", position);
  const Array& self = call.tensor(0);
  if (!value.array) return results(filled(call, self.shape, value));
  call.expect(value.array->shape.size() == 0, "expected a value of 0 dims");
  return results(broadcast_to(call, cast(*value.array, self.dtype), self.shape));
}

ArrayResults copy(const LocalCall& call) {
  const Array& self = call.tensor(0);
  return results(cast(broadcast_to(call, call.tensor(1), self.shape), self.dtype));
}

ArrayResults same(const LocalCall& call) {
  return results(cast(call.tensor(0), call.dtype_or(call.tensor(0).dtype)));
}

ArrayResults equal(const LocalCall& call) {
  const Array &a = call.tensor(0), &b = call.tensor(1);
  bool is_equal = a.shape == b.shape && values<double>(a) == values<double>(b) &&
                  values<std::int64_t>(a) == values<std::int64_t>(b);
  return results(Array::of(DType::Bool, Shape{}, std::vector<std::int64_t>{is_equal}));
}

// Operators that return a Python number or bool have no tensor results.
ArrayResults nothing(const LocalCall&) { return {}; }

constexpr std::array kCreationRows{
    OperatorRow{"_local_scalar_dense", nothing},
    OperatorRow{"is_same_size", nothing},
    OperatorRow{"empty_like", constant<true, 0>},
    OperatorRow{"zeros_like", constant<true, 0>},
    OperatorRow{"ones_like", constant<true, 1>},
    OperatorRow{"full_like", full<true>},
    OperatorRow{"new_empty", constant<false, 0>},
    OperatorRow{"new_zeros", constant<false, 0>},
    OperatorRow{"new_ones", constant<false, 1>},
    OperatorRow{"new_full", full<false>},
    OperatorRow{"new_empty_strided", constant<false, 0>},
    OperatorRow{"zero", constant<true, 0>},
    OperatorRow{"fill", fill},
    OperatorRow{"copy", copy},
    OperatorRow{"_to_copy", same},
    OperatorRow{"to", same},
    OperatorRow{"clone", same},
    OperatorRow{"detach", same},
    OperatorRow{"alias", same},
    OperatorRow{"contiguous", same},
    OperatorRow{"lift_fresh", same},
    OperatorRow{"equal", equal},
};

}  // namespace

std::span<const OperatorRow> creation_rows() { return kCreationRows; }

}  // namespace reshard::sim
