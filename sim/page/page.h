// SPDX-License-Identifier: BSD-3-Clause
// A page, and what it is made of: panels, figures and facts, tables, legends.
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

// A page of its own: one file that needs no other, no network and no script to be read.
//
// What is written is HTML for browsers and well-formed XML for everybody else, so that any parser
// can take a page apart. Style and script are files of this folder, compiled in; colours are
// variables of the style, a set for light and one for dark, and pictures name them by class.
//
// A page is a heading and panels. A panel is a heading, a sentence and pictures, each of which is
// one call, and below a table of the same numbers.
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

// The top of a page: what was asked, what came out in a few figures, and what the time waits for.

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

// What the time of a run is waited for, as parts of one bar; nothing where no time passes.
void draw_causes(Node parent, const PathFacts& path);

// Tables of a page: figures aligned right and, where the script runs, sorted by a click on a title.

struct Cell {
  Cell(std::string_view text_in) : text(text_in) {}
  Cell(const std::string& text_in) : text(text_in) {}
  Cell(const char* text_in) : text(text_in) {}
  // Sorted by `order_in`, not by how its text is written.
  Cell(std::string_view text_in, std::int64_t order_in) : text(text_in), order(order_in) {}
  static Cell count(std::int64_t number);
  static Cell bytes(std::int64_t number);
  // "-" where there is none, which is sorted behind all others.
  static Cell time(std::optional<std::int64_t> ps);
  static Cell ratio(std::optional<std::int64_t> ratio_e4);

  std::string text;
  std::optional<std::int64_t> order = {};
};

class HtmlTable {
 public:
  // A title behind '>' is of figures, as in sim/report/table.h. `caption` says what the rows are.
  HtmlTable(Node parent, std::string_view caption, const std::vector<std::string>& titles);
  // As many cells as titles. Returns the row.
  Node add_row(const std::vector<Cell>& cells);

 private:
  std::vector<bool> figures_;  // by column
  Node body_;
};

// A folded part of a panel, for what not everybody wants to see: the numbers of its picture.
Node add_folded(Node panel, std::string_view heading);

// What the colours of a picture stand for: a line of swatches and words below it, which go on below
// themselves where the page is narrow.
class Legend {
 public:
  explicit Legend(Node panel) : list_(add(panel, "ul", {{"class", "legend"}})) {}
  // `colour` is a class of the style; `value` stands out from the words before it.
  void add_entry(std::string_view colour, std::string_view text, std::string_view value = {});
  void add_words(std::string_view text) { add(list_, "li", {}, text); }

 private:
  Node list_;
};

// What pictures and tables call the ranks that share a row. "rank 3", "ranks 0-7 (8)", "ranks 0, 8,
// .. (128)" of a long list. At least one.
std::string ranks_name(const std::vector<Rank>& ranks);

}  // namespace reshard::sim
