// SPDX-License-Identifier: BSD-3-Clause
// A small model of every family, and what layouts have of it.
#pragma once

#include <string>

#include "sim/check/check_file.h"
#include "sim/models/weights/model.h"

namespace reshard::test {

// Two layers, of which a family with dense layers has one of each kind. `fields` is JSON, ", ...".
std::string small_config(const std::string& family, const std::string& fields = "");
sim::Model small_model(const std::string& family, const std::string& fields = "");

sim::ModelLayouts layouts_of(const std::string& lines);
// "" if every element of every tensor is in some buffer of the side, else the name of a tensor that
// is not there in full.
std::string lost_tensor(const sim::ModelLayouts& layouts, const Stored& side);

// What a rank has in a buffer, in the order of its memory: "q_proj[0:6] k_proj[0:2]", of the last
// words of the tensors' names and dim 0 alone.
std::string rows_in(const Stored& side, int rank, const std::string& buffer);

}  // namespace reshard::test
