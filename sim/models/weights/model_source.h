// SPDX-License-Identifier: BSD-3-Clause
// Reads a model's weights from a config.json, or from a checkpoint that has one next to it.
#pragma once

#include <string>
#include <vector>

#include "sim/models/weights/file_names.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

struct ModelSource {
  std::string path;         // config.json, a checkpoint's folder, index or .safetensors file
  std::string config = {};  // empty: `path`, or config.json next to the checkpoint
  std::string roles = {};   // a file of roles (sim/models/weights/roles.h)
};

// A checkpoint must have exactly the weights of its config, in the config's shapes. For an index
// without its files, only the names are compared. Throws InputError.
Model read_model(const ModelSource& source);

}  // namespace reshard::sim
