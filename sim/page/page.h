// SPDX-License-Identifier: BSD-3-Clause
// A page and its building blocks: panels, figures and facts, tables, legends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/embedded_text.h"
#include "core/base/ids.h"
#include "sim/picture/markup.h"
#include "sim/study/run_facts.h"

namespace reshard::sim {

// A self-contained page: one file that can be read without other files, network or script.
//
// The output is HTML for browsers and also well-formed XML, so that any XML parser can read it.
// Style and script are files of this folder, compiled in. Colours are variables of the style, one
// set for light and one for dark; pictures refer to them by class.
//
// A page is a heading and panels. A panel is a heading, a sentence, pictures, each drawn by one
// call, and below them a table of the same numbers.
class Page {
 public:
  // `kind` is the kind of page ("simulation", "replay"), `title` its subject.
  Page(std::string_view kind, std::string_view title);
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  Node header() const { return header_; }
  // Adds a panel at the end. `id` must be unique.
  Node add_panel(const char* id, std::string_view heading, std::string_view sentence = {});
  std::string text();

 private:
  pugi::xml_document document_;
  Node header_, contents_, main_;
};

// A frame for a picture that is also used outside pages; it scrolls if the page is too narrow.
Node add_frame(Node panel);
// A picture in a frame that is only used in pages: as wide as the page, coloured by its style.
Node add_chart(Node panel, double width, double height, std::string_view title);

// The files "page_style" and "page_script".
std::span<const EmbeddedText> page_parts();

// ---- the top of a page: the request, the result in a few figures, and what the time waits for

// One large number: "time", "671.089 us", "1.04 times the bound".
struct Figure {
  std::string name, value, note = {};
};
void draw_figures(Node parent, const std::vector<Figure>& figures);

// Names and values in two columns.
struct Fact {
  std::string name, value;
};
void draw_facts(Node parent, const std::vector<Fact>& facts);

// The causes of waiting on the critical path, as parts of one bar; nothing if no time passes.
void draw_causes(Node parent, const PathFacts& path);

// ---- tables: figures are aligned right; with the script, a click on a title sorts the rows

struct Cell {
  Cell(std::string_view text_in) : text(text_in) {}
  Cell(const std::string& text_in) : text(text_in) {}
  Cell(const char* text_in) : text(text_in) {}
  // Sorted by `order_in` instead of by its text.
  Cell(std::string_view text_in, std::int64_t order_in) : text(text_in), order(order_in) {}
  static Cell count(std::int64_t number);
  static Cell bytes(std::int64_t number);
  // "-" for none, which sorts after all others.
  static Cell time(std::optional<std::int64_t> ps);
  static Cell ratio(std::optional<std::int64_t> ratio_e4);

  std::string text;
  std::optional<std::int64_t> order = {};
};

class HtmlTable {
 public:
  // A title with a leading '>' makes a column of figures, as in sim/report/table.h. `caption`
  // describes the rows.
  HtmlTable(Node parent, std::string_view caption, const std::vector<std::string>& titles);
  // As many cells as titles. Returns the row.
  Node add_row(const std::vector<Cell>& cells);

 private:
  std::vector<bool> figures_;  // by column
  Node body_;
};

// A folded part of a panel, for details such as the numbers of its picture.
Node add_folded(Node panel, std::string_view heading);

// The meaning of a picture's colours: a line of swatches and words below it, which wraps on a
// narrow page.
class Legend {
 public:
  explicit Legend(Node panel) : list_(add(panel, "ul", {{"class", "legend"}})) {}
  // `colour` is a class of the style; `value` is emphasised after the words.
  void add_entry(std::string_view colour, std::string_view text, std::string_view value = {});
  void add_words(std::string_view text) { add(list_, "li", {}, text); }

 private:
  Node list_;
};

// The name of the ranks that share a row: "rank 3", "ranks 0-7 (8)"; of a long list "ranks 0, 8, ..
// (128)". At least one rank.
std::string ranks_name(const std::vector<Rank>& ranks);

}  // namespace reshard::sim
