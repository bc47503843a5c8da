// SPDX-License-Identifier: BSD-3-Clause
// What an operator computes on dense arrays: on each rank's shards, or on whole tensors.
//
// Floating values are computed in double, sums too, and rounded once, to the dtype of the result:
// so the same elements give the same bits however a tensor is cut (but for a sum that is itself
// cut). Integers wrap to their width. bf16 and f16 are thereby rounded after every operator.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/errors.h"

#include "core/ops/attributes.h"
#include "sim/operators/array.h"

namespace reshard::sim {

// Where a random operator's numbers come from: element i of an output takes number offset + i of
// the stream of `seed`, whatever the rank.
struct RandomStream {
  std::uint64_t seed = 0;
  std::int64_t offset = 0;
};

using ArrayResults = std::vector<std::optional<Array>>;  // absent: an output that is not made

struct OperatorRow;

// An operator that was found by its name; a value, cheap to keep and to copy.
class LocalOperator {
 public:
  // Arguments in the order of the operator's tensors, absent ones at the end may be left out. In
  // place and out forms give what they write, in the written tensor's dtype. Throws InputError for
  // arguments that do not fit.
  ArrayResults operator()(const std::vector<ArrayArgument>& arguments,
                          const OpAttributes& attributes, const RandomStream& random) const;

 private:
  friend std::optional<LocalOperator> find_local_operator(std::string_view name);
  enum class Form : std::uint8_t { Plain, InPlace, Out };
  const OperatorRow* row_ = nullptr;
  Form form_ = Form::Plain;
  bool foreach_ = false;  // over lists
};

// `name` is ATen's, with or without "aten.", with its overload after a dot where it has several
// ("add.Tensor", "max.dim"; an overload may be left out where arguments tell which is meant).
// Nothing where no such operator is computed.
std::optional<LocalOperator> find_local_operator(std::string_view name);

// Of an operator that is known and whose values are not worked out here.
class NotComputed : public InputError {
 public:
  using InputError::InputError;
};

// Finds and calls. Throws NotComputed for an operator that is not there, or not with such dtypes.
ArrayResults compute(std::string_view name, const std::vector<ArrayArgument>& arguments,
                     const OpAttributes& attributes, const RandomStream& random);

// Whether compute() knows it.
bool computes(std::string_view name);

}  // namespace reshard::sim
