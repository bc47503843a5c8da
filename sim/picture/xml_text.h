// SPDX-License-Identifier: BSD-3-Clause
// Names come from files of others; XML has room for less than they may hold.
#pragma once

#include <string>
#include <string_view>

namespace reshard::sim {

// `text` with every byte sequence that is no character of XML 1.0 in UTF-8 (control characters
// among them) as one U+FFFD.
std::string xml_text(std::string_view text);

}  // namespace reshard::sim
