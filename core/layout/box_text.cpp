// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/box_text.h"

namespace reshard {

Box read_box(Cursor& cursor, const Shape& shape) {
  Box out;
  for (int d = 0; d < shape.size(); ++d) {
    if (d > 0) cursor.expect(",");
    cursor.skip_spaces();
    bool whole = cursor.accept(":");
    out.lo.push_back(whole ? 0 : cursor.integer("the first index of a box", 0, shape[d]));
    bool one = !whole && !cursor.accept(":");
    out.hi.push_back(whole ? shape[d]
                     : one ? out.lo[d] + 1
                           : cursor.integer("the end of a box", out.lo[d], shape[d]));
    if (out.hi[d] > shape[d]) cursor.fail("an index within the shape");
    cursor.skip_spaces();
  }
  return out;
}

}  // namespace reshard
