// SPDX-License-Identifier: BSD-3-Clause
// Groups the tensors of a job by kind, as people think of them: "the q_proj of all 61 layers".
//
// Tensors are of one kind if their shapes, dtypes and placements are equal, their meshes are equal
// up to a translation of ranks (separately for source and destination: other pipeline stages, other
// owners), and their names are equal apart from numbers.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/layout/request.h"

namespace reshard::sim {

struct TensorGroup {
  // The common name, with "*" for each number in which the names differ:
  // "model.layers.*.mlp.up_proj". Empty if the tensors have no names.
  std::string name;
  std::vector<std::size_t> tensors;  // indices, ascending, at least one
};

std::vector<const Request*> pointers_to(std::span<const Request> requests);

// The kinds of the tensors, in the order of their first tensors.
std::vector<TensorGroup> tensor_kinds(std::span<const Request* const> tensors);

}  // namespace reshard::sim
