// SPDX-License-Identifier: BSD-3-Clause
// A page of its own: one file that needs no other, no network and no script to be read.
//
// What is written is HTML for browsers and well-formed XML for everybody else, so that any parser
// can take a page apart. Style and script are files of this folder, compiled in; colours are
// variables of the style, a set for light and one for dark, and pictures name them by class.
//
// A page is a heading and panels. A panel is a heading, a sentence and pictures, each of which is
// one call, and below a table of the same numbers.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/embedded_text.h"
#include "sim/picture/markup.h"

namespace reshard::sim {

class Page {
 public:
  // `kind` is what the page is of ("simulation", "replay"), `title` of what.
  Page(std::string_view kind, std::string_view title);
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  Node header() const { return header_; }
  // A new panel at the end; `id` is unique among them.
  Node add_panel(const char* id, std::string_view heading, std::string_view sentence = {});
  std::string text();

 private:
  pugi::xml_document document_;
  Node header_, contents_, main_;
};

// Where a picture goes that is drawn for other places, too: scrolled where the page is too narrow.
Node add_frame(Node panel);
// A picture of a page alone, in a frame: as wide as the page, coloured by its style.
Node add_chart(Node panel, double width, double height, std::string_view title);

// The files "page_style" and "page_script".
std::span<const EmbeddedText> page_parts();

}  // namespace reshard::sim
