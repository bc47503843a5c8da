// SPDX-License-Identifier: BSD-3-Clause
// Where the spots of a wiring stand in a picture of one node.
//
// Devices stand in a row. Every other spot is a bar above them that spans all that it is joined to
// from below, so that cables run straight up; spots of the NVLink alone are bars below. Bars that
// would overlap stand on different tracks.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/picture/wiring.h"

namespace reshard::sim {

struct Place {
  std::int32_t track = 0;    // 0: the devices; above them from 1, below from -1
  double low = 0, high = 0;  // in columns of devices
  std::int32_t level = 0;    // joints and links to the nearest device
  bool touches_all = false;  // every device touches it, without a link between
  friend bool operator==(const Place&, const Place&) = default;
};

// By spot. Those outside stand above all others and span the whole node.
std::vector<Place> places_of(const Wiring& wiring);

}  // namespace reshard::sim
