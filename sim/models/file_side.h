// SPDX-License-Identifier: BSD-3-Clause
// Sides of a transfer as files of other tools describe them.
#pragma once

#include <string>

#include "sim/models/files/dcp.h"
#include "sim/models/files/foreign_layouts.h"
#include "sim/models/transfer.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

// A distributed checkpoint of PyTorch, in which each chunk is on the rank that saved it. Its
// tensors are the model's weights; all names may have a prefix, and experts are separate or
// stacked. Throws InputError if the checkpoint lacks a weight or has it in another shape.
GivenSide dcp_side(const Model& model, const DcpMetadata& metadata, const std::string& place);

// Both sides from the files of another tool, such as M2N or Mooncake. `what` describes them.
TransferText foreign_text(const ForeignLayouts& both, std::string what);
TransferText foreign_text(const ForeignLayouts& from, const ForeignLayouts& to, std::string what);

}  // namespace reshard::sim
