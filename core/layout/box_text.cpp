// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/box_text.h"

#include <fmt/core.h>

namespace reshard {

Box read_box(Cursor& cursor, const Shape& shape) {
  Box out;
  auto ends_here = [&] {
    cursor.skip_spaces();
    return cursor.at_end() || cursor.peek() == ',' || cursor.peek() == ']';
  };
  for (int d = 0; d < shape.size(); ++d) {
    if (d > 0) cursor.expect(",");
    cursor.skip_spaces();
    const Cursor before = cursor;
    bool begins = cursor.peek() != ':';
    out.lo.push_back(begins ? cursor.integer("the first index of a box", 0, shape[d]) : 0);
    if (begins && !cursor.accept(":")) {
      out.hi.push_back(out.lo[d] + 1);
      if (out.hi[d] > shape[d]) before.fail(fmt::format("an index below {}", shape[d]));
    } else {
      if (!begins) cursor.expect(":");
      out.hi.push_back(ends_here() ? shape[d]
                                   : cursor.integer("the end of a box", out.lo[d], shape[d]));
    }
    cursor.skip_spaces();
  }
  return out;
}

}  // namespace reshard
