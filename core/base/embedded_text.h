// SPDX-License-Identifier: BSD-3-Clause
// A text file that is compiled in (embed_texts of cmake/parts.cmake).
#pragma once

#include <string_view>

namespace reshard {

struct EmbeddedText {
  std::string_view name;  // file name up to its first '.'
  std::string_view text;
};

}  // namespace reshard
