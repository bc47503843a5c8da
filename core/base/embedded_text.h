// SPDX-License-Identifier: BSD-3-Clause
// A text file that cmake/embed.cmake compiled in.
#pragma once

#include <string_view>

namespace reshard {

struct EmbeddedText {
  std::string_view name;  // of the file, without what stands behind its first '.'
  std::string_view text;
};

}  // namespace reshard
