// SPDX-License-Identifier: BSD-3-Clause
// Reads the fields of a placement manifest, and checks each by itself.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/models/files/foreign_layouts.h"

namespace reshard::sim {

// The axes of coordinates, in this order.
inline constexpr std::array<std::string_view, 5> kPlacementAxes{"dp", "tp", "pp", "ep", "cp"};
using PlacementCoordinates = std::array<std::int64_t, kPlacementAxes.size()>;

struct PlacementFragment {
  std::size_t participant;
  Box box;
};

struct PlacementTensor {
  ForeignTensor tensor;
  // By axis: whether each rank along it has a copy of its own; whether only some ranks have the
  // tensor.
  std::array<bool, kPlacementAxes.size()> is_replicated{}, is_owned{};
  std::vector<PlacementFragment> fragments = {};
  std::vector<std::string> aliases = {};  // ascending, including its own name; empty: none
};

struct PlacementManifest {
  std::vector<PlacementCoordinates> participants;  // in the order of the topology
  std::vector<PlacementTensor> tensors;            // in the order of the file
};

// Throws InputError.
PlacementManifest parse_placement_json(std::string_view text, const std::string& place);

}  // namespace reshard::sim
