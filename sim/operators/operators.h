// SPDX-License-Identifier: BSD-3-Clause
// Computes the values of operators on dense arrays: on each rank's shards, or on whole tensors.
//
// Floating values, including sums, are computed in double and rounded once, to the dtype of the
// result. The same elements thus give the same bits however a tensor is sharded, unless a sum is
// itself split over ranks. bf16 and f16 are rounded after every operator. Integers wrap to their
// width.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/errors.h"

#include "core/ops/attributes.h"
#include "sim/operators/array.h"

namespace reshard::sim {

// The source of a random operator's numbers: element i of an output takes number offset + i of the
// stream of `seed`, on every rank.
struct RandomStream {
  std::uint64_t seed = 0;
  std::int64_t offset = 0;
};

using ArrayResults = std::vector<std::optional<Array>>;  // none: an output that is not produced

struct OperatorRow;

// An operator found by name; cheap to copy.
class LocalOperator {
 public:
  // Arguments in the order of the operator's tensors; absent ones at the end can be omitted.
  // In-place and out forms return what they write, in the dtype of the written tensor. Throws
  // InputError for arguments that do not fit.
  ArrayResults operator()(const std::vector<ArrayArgument>& arguments,
                          const OpAttributes& attributes, const RandomStream& random) const;

 private:
  friend std::optional<LocalOperator> find_local_operator(std::string_view name);
  enum class Form : std::uint8_t { Plain, InPlace, Out };
  const OperatorRow* row_ = nullptr;
  Form form_ = Form::Plain;
  bool foreach_ = false;  // "_foreach_...": applied at every position of lists
};

// `name` is ATen's, with or without "aten.", and with the overload after a dot if there are several
// ("add.Tensor", "max.dim"); the overload can be omitted if the arguments decide it. None if no
// such operator is computed.
std::optional<LocalOperator> find_local_operator(std::string_view name);

// Thrown for operators with values that are not computed here.
class NotComputed : public InputError {
 public:
  using InputError::InputError;
};

// Finds and calls an operator. Throws NotComputed if there is none, or none for these dtypes.
ArrayResults compute(std::string_view name, const std::vector<ArrayArgument>& arguments,
                     const OpAttributes& attributes, const RandomStream& random);

// Whether compute() has the operator itself; and whether it has it or the operator is composed of
// others, some of which compute() may lack.
bool computes_itself(std::string_view name);
bool computes(std::string_view name);

}  // namespace reshard::sim
