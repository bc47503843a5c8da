// SPDX-License-Identifier: BSD-3-Clause
// A model's weights from its config.json, by the rules of its family.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/models/weights/model.h"

namespace reshard::sim {

// The model_types whose weights are known.
std::vector<std::string_view> model_families();

// `text` is config.json; of models for several kinds of input, its text_config. Weights have the
// dtype that the config states for them before they are quantised (torch_dtype); `scale_block` is
// that of its quantisation in FP8 by blocks. Throws InputError "FILE: FIELD: ..." for a family that
// is not known, and for sizes that are missing or contradict each other.
Model parse_config(std::string_view text, const std::string& file);

// The same model as its quantised checkpoint has it: f8e4m3, with scales. The model has a
// scale_block.
void quantise(Model& model);

}  // namespace reshard::sim
