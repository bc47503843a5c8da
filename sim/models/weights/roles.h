// SPDX-License-Identifier: BSD-3-Clause
// The role of each weight, as a table for users and as a file by which they change it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/models/weights/file_names.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

// One row per name, with '*' for the numbers of layers.
std::string roles_text(const Model& model, std::size_t width);
std::string roles_json(const Model& model);  // "reshard.roles/1"

// An entry of a JSON object such as {"model.layers.*.mlp.extra.weight": "column"}; '*' matches any
// text without a '.'.
struct RolePattern {
  std::string pattern;
  Role role;
};
// Throws InputError "PLACE: PATTERN: ...".
std::vector<RolePattern> parse_roles(std::string_view text, const std::string& place);

// Gives each weight the role of the last pattern that it matches, and adds those of `tensors` that
// match a pattern and are missing from the model. Throws InputError if a pattern matches nothing,
// or if a tensor to be added has no shape.
void apply_roles(const std::vector<RolePattern>& patterns, const std::vector<FileTensor>& tensors,
                 Model& model, const std::string& place);

}  // namespace reshard::sim
