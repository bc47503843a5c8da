// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/legend.h"

#include <fmt/format.h>

namespace reshard::sim {

void Legend::add_entry(std::string_view colour, std::string_view text, std::string_view value) {
  Node entry = add(list_, "li");
  add(entry, "span", {{"class", fmt::format("swatch {}", colour)}});
  add(entry, "span", {}, text);
  if (!value.empty()) add(entry, "span", {{"class", "value"}}, value);
}

}  // namespace reshard::sim
