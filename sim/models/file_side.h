// SPDX-License-Identifier: BSD-3-Clause
// Sides of a transfer that files of other tools describe.
#pragma once

#include <string>

#include "sim/models/files/dcp.h"
#include "sim/models/files/foreign_layouts.h"
#include "sim/models/transfer.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

// A distributed checkpoint of PyTorch: the ranks that saved it have its chunks. Its tensors are the
// model's weights, perhaps all with a prefix, experts one by one or together. Throws InputError for
// weights that it lacks or has in another shape.
GivenSide dcp_side(const Model& model, const DcpMetadata& metadata, const std::string& place);

// Both sides from files: M2N's, Mooncake's. `what` they are.
TransferText foreign_text(const ForeignLayouts& both, std::string what);
TransferText foreign_text(const ForeignLayouts& from, const ForeignLayouts& to, std::string what);

}  // namespace reshard::sim
