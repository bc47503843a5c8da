// SPDX-License-Identifier: BSD-3-Clause
// What an operator computes on dense arrays: on each rank's shards, or on whole tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

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

// `name` is ATen's without "aten.", with its overload after a dot where it has several
// ("add.Tensor", "max.dim"; an overload may be left out where arguments tell which is meant).
// Arguments in the order of the operator's tensors, absent ones at the end may be left out. In
// place and out forms give what they write. Throws InputError for an operator that is not there,
// and for arguments that do not fit it.
ArrayResults compute(std::string_view name, const std::vector<ArrayArgument>& arguments,
                     const OpAttributes& attributes, const RandomStream& random);

// Whether compute() knows it.
bool computes(std::string_view name);

}  // namespace reshard::sim
