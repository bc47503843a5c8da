// SPDX-License-Identifier: BSD-3-Clause
// A text file that was compiled in (embed_texts of cmake/parts.cmake).
#pragma once

#include <string_view>

namespace reshard {

struct EmbeddedText {
  std::string_view name;  // of the file, without what stands behind its first '.'
  std::string_view text;
};

}  // namespace reshard
