// SPDX-License-Identifier: BSD-3-Clause
// Boxes as users write them.
#pragma once

#include "core/base/cursor.h"
#include "core/layout/box.h"

namespace reshard {

// Reads "0:4,:,7" for a box of `shape`: ":" is a whole dim, "7" is 7:8. Throws as Cursor does, also
// for indices outside of the shape and ends before their beginnings.
Box read_box(Cursor& cursor, const Shape& shape);

}  // namespace reshard
