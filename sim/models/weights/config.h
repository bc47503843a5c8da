// SPDX-License-Identifier: BSD-3-Clause
// Derives a model's weights from its config.json by the rules of its family.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/models/weights/model.h"

namespace reshard::sim {

// The values of model_type that are supported.
std::vector<std::string_view> model_families();

// `text` is config.json; for multimodal models, its text_config counts. Weights have the dtype that
// the config states for them before quantisation (torch_dtype); `scale_block` is set if the config
// describes FP8 with block scales. Throws InputError "FILE: FIELD: ..." for an unknown family, and
// for sizes that are missing or contradict each other.
Model parse_config(std::string_view text, const std::string& file);

// Turns the model into its quantised checkpoint: weights in f8e4m3, with scales. The model must
// have a scale_block.
void quantise(Model& model);

}  // namespace reshard::sim
