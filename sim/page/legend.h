// SPDX-License-Identifier: BSD-3-Clause
// What the colours of a picture stand for: a line of swatches and words below it, which go on below
// themselves where the page is narrow.
#pragma once

#include <string_view>

#include "sim/picture/markup.h"

namespace reshard::sim {

class Legend {
 public:
  explicit Legend(Node panel) : list_(add(panel, "ul", {{"class", "legend"}})) {}
  // `colour` is a class of the style; `value` stands out from the words before it.
  void add_entry(std::string_view colour, std::string_view text, std::string_view value = {});
  void add_words(std::string_view text) { add(list_, "li", {}, text); }

 private:
  Node list_;
};

}  // namespace reshard::sim
