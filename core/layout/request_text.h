// SPDX-License-Identifier: BSD-3-Clause
// A request from the texts that users write, on the command line and in the C API.
#pragma once

#include <string>
#include <string_view>

#include "core/layout/request.h"

namespace reshard {

struct RequestTexts {
  // Empty: ranks 0..n-1, the destination's mesh is the source's, f32; an empty shape is a.
  std::string mesh, ranks, to_mesh, to_ranks, shape, dtype, from, to;
  // scalar
};

// Throws InputError naming the field at fault, `prefix` before its name ("--" makes it the
// option's).
Request parse_request(const RequestTexts& texts, std::string_view prefix = {});

}  // namespace reshard
