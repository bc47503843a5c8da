// SPDX-License-Identifier: BSD-3-Clause
// What each weight is for, as a table that users read, and as a file with which they change it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/models/weights/file_names.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

// A row for each name, with '*' for the numbers of layers.
std::string roles_text(const Model& model, std::size_t width);
std::string roles_json(const Model& model);  // "reshard.roles/1"

// A JSON object {"model.layers.*.mlp.extra.weight": "column"}: '*' stands for what has no '.'.
struct RolePattern {
  std::string pattern;
  Role role;
};
// Throws InputError "PLACE: PATTERN: ...".
std::vector<RolePattern> parse_roles(std::string_view text, const std::string& place);

// Gives weights that match a pattern its role, the last one that matches, and adds those of
// `tensors` that the model lacks and that match. Throws InputError for a pattern that nothing
// matches, for a tensor that is added without a shape, and for a role that the tensor cannot have
// in any framework: a second query in a layer, a bias of another length.
void apply_roles(const std::vector<RolePattern>& patterns, const std::vector<FileTensor>& tensors,
                 Model& model, const std::string& place);

}  // namespace reshard::sim
