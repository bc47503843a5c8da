// SPDX-License-Identifier: BSD-3-Clause
// Draws the source and the destination of a request, with a box for each shard.
#include "sim/picture/pictures.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/units.h"
#include "sim/picture/drawing.h"
#include "sim/picture/tile_label.h"
#include "sim/picture/tiles.h"
#include "sim/report/ratios.h"

namespace reshard::sim {
namespace {

// With more ranks a reader cannot find one in a picture, and strided shards would take too long.
constexpr std::int32_t kMostRanks = 16'384;

constexpr double kFrame = 20, kGutter = 22, kPanel = 430, kGap = 64, kTitleHeight = 64;
constexpr double kWidth = 2 * (kFrame + kGutter + kPanel) + kGap;

// "0-3,8", shortened to fit a line.
std::string shortened(const std::string& ranks, std::size_t count) {
  constexpr std::size_t most = 100;
  if (ranks.size() <= most) return ranks;
  return fmt::format("{}... ({} in total)", ranks.substr(0, ranks.rfind(',', most) + 1), count);
}

// One layout of the request, drawn into its half.
struct Side {
  const Layout& layout;
  double x;
  bool partial;  // ranks hold addends instead of values
  bool joined;   // a tile can contain several shards
  std::vector<std::vector<Tile>> slices;
};

// What a tile's label shows: which part the tile is; `whole`: all of its ranks or none.
struct Words {
  bool part, whole;
};

class ShardingPicture {
 public:
  explicit ShardingPicture(const Request& request)
      : request_(request),
        view_(view_of(request)),
        before_(side(request.source(), kFrame + kGutter)),
        after_(side(request.destination(), kFrame + 2 * kGutter + kPanel + kGap)),
        by_source_(!request.is_product() || before_.slices.empty() ||
                   before_.slices[0].size() > 1 || view_.slices.size() > 1) {
    for (const std::vector<Tile>& tiles : (by_source_ ? before_ : after_).slices)
      for (const Tile& tile : tiles) number_.emplace(tile.positions, number_.size());
  }

  void draw(Node parent) const {
    std::vector<std::string> notes = notes_below();
    double height = panel_height(), slice_head = view_.slices.size() > 1 ? 20 : 0;
    double rows = static_cast<double>(std::max<std::size_t>(1, view_.slices.size()));
    double bottom = kTitleHeight + 20 + rows * (height + slice_head + 22);
    Node svg = add_picture(parent, kWidth, bottom + 16 * static_cast<double>(notes.size()) + 6,
                           request_.text());
    draw_head(svg, before_, "before");
    draw_head(svg, after_, "after");
    double y = kTitleHeight + 20;
    for (std::size_t s = 0; s < view_.slices.size(); ++s) {
      if (slice_head > 0) add_text(svg, kFrame, y + 4, 12, slice_name(view_.slices[s]));
      y += slice_head;
      draw_slice(svg, before_, s, y, height);
      draw_arrow(svg, y + height / 2);
      draw_slice(svg, after_, s, y, height);
      y += height + 22;
    }
    for (const std::string& note : notes) {
      add_text(svg, kFrame, bottom, 12, note, "start", Tone::Soft);
      bottom += 16;
    }
  }

 private:
  Side side(const Layout& layout, double x) const {
    Side out{layout, x, layout.has_addends(), shards_joined(layout, view_), {}};
    for (const Box& slice : view_.slices) out.slices.push_back(tiles_of(layout, view_, slice));
    return out;
  }

  // "dim 0 at 0:8, dim 3 at 2:4".
  std::string slice_name(const Box& slice) const {
    std::vector<std::string> parts;
    for (int d = 0; d < slice.dims(); ++d)
      if (slice.extent(d) < extent(d))
        parts.push_back(fmt::format("dim {} at {}:{}", d, slice.lo[d], slice.hi[d]));
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  std::int64_t extent(int dim) const { return dim < 0 ? 1 : request_.shape()[dim]; }

  // In proportion to the tensor, within limits, and with rows high enough to be read.
  double panel_height() const {
    if (view_.down < 0) return 72;
    double true_height = kPanel * static_cast<double>(extent(view_.down)) /
                         static_cast<double>(extent(view_.across));
    double most = view_.slices.size() > 1 ? 220 : kPanel, rows = 0;
    for (const Side* side : {&before_, &after_})
      if (!side->slices.empty()) {
        std::set<std::int64_t> starts;
        for (const Tile& tile : side->slices[0]) starts.insert(tile.box.lo[view_.down]);
        rows = std::max(rows, static_cast<double>(starts.size()));
      }
    return std::max(std::clamp(true_height, 130.0, most), 14 * rows);
  }

  Rectangle place(const Box& box, double x, double y, double height) const {
    auto part = [&](std::int64_t index, int dim, double length) {
      return length * static_cast<double>(index) / static_cast<double>(extent(dim));
    };
    Rectangle out{x, y, kPanel, height};
    if (view_.across >= 0) {
      out.x += part(box.lo[view_.across], view_.across, kPanel);
      out.width = part(box.extent(view_.across), view_.across, kPanel);
    }
    if (view_.down >= 0) {
      out.y += part(box.lo[view_.down], view_.down, height);
      out.height = part(box.extent(view_.down), view_.down, height);
    }
    return out;
  }

  void draw_head(Node svg, const Side& side, const char* when) const {
    const Mesh& mesh = side.layout.mesh();
    add_text(svg, side.x, 26, 12, when, "start", Tone::Soft);
    add_heading(svg, side.x + 50, 26, 16, side.layout.label());
    add_text(svg, side.x, 45, 12,
             fmt::format("mesh {}, ranks {}", shape_text(mesh),
                         shortened(ranks_text(mesh.ranks()), to_index(mesh.size()))),
             "start", Tone::Soft);
    if (view_.across >= 0)
      add_text(svg, side.x + kPanel, 76, 11,
               fmt::format("dim {}: {}", view_.across, extent(view_.across)), "end", Tone::Soft);
  }

  static void draw_arrow(Node svg, double y) {
    double x = kFrame + kGutter + kPanel + (kGap - 34) / 2;
    Node arrow = add(
        svg, "path",
        {{"d", fmt::format("M{0} {1}h34m-9 -7l9 7l-9 7", coordinate_text(x), coordinate_text(y))},
         {"fill", "none"}});
    stroke(arrow, Tone::Soft, 2);
  }

  void draw_slice(Node svg, const Side& side, std::size_t slice, double y, double height) const {
    Node panel = add(svg, "g", {{"class", &side == &before_ ? "before" : "after"}});
    if (view_.down >= 0) {
      Node text =
          add_text(panel, side.x - 7, y + height / 2, 11,
                   fmt::format("dim {}: {}", view_.down, extent(view_.down)), "middle", Tone::Soft);
      turn_upwards(text, side.x - 7, y + height / 2);
    }
    auto place_of = [&](const Box& box) { return place(box, side.x, y, height); };
    // Tiles show which part they are if the longest text fits the widest tile.
    double longest = 0, widest = 0;
    bool crowded = side.joined;
    for (const Tile& tile : side.slices[slice]) {
      Rectangle at = place_of(tile.box);
      longest = std::max(longest, width_for_part(slice_text(tile.box, request_.shape())));
      widest = std::max(widest, at.width);
      crowded |= !room_for_ranks(at, holders_text(side.layout, tile.positions));
    }
    // In a crowded slice only the first tile of a row shows a shortened list of ranks.
    for (const Tile& tile : side.slices[slice]) {
      bool whole = crowded && view_.across >= 0 && tile.box.lo[view_.across] > 0;
      draw_tile(add(panel, "g"), side, slice, tile, {longest <= widest, whole}, place_of);
    }
  }

  // Draws the tile in the colours of its data, then its label.
  template <class Place>
  void draw_tile(Node group, const Side& side, std::size_t slice, const Tile& tile, Words words,
                 const Place& place_of) const {
    bool is_after = &side == &after_;
    const Side& other = is_after ? before_ : after_;
    std::set<Colour> colours;
    auto paint = [&](const Box& box, const Tile& key, const Tile* was) {
      Colour colour = colour_of(key);
      colours.insert(colour);
      Rectangle at = place_of(box);
      Node part = add_rectangle(group, at.x, at.y, at.width, at.height);
      fill(part, colour);
      add_tip(part, tip(side, tile, box, was));
    };
    if (is_after || !by_source_) {
      for (const Tile& there : other.slices[slice]) {
        Box box = intersect(tile.box, there.box);
        if (box.empty()) continue;
        paint(box, by_source_ == is_after ? there : tile, is_after ? &there : nullptr);
      }
    } else {
      paint(tile.box, tile, nullptr);
    }
    Rectangle at = place_of(tile.box);
    if (side.partial) hatch(group, at);
    // A fixed colour, since the tiles' colours are the same in light and dark mode.
    add(group, "rect",
        {{"class", "box"},
         {"x", at.x},
         {"y", at.y},
         {"width", at.width},
         {"height", at.height},
         {"fill", "none"},
         {"stroke", "#1f2328"},
         {"stroke-width", 1.2},
         {"pointer-events", "none"}});
    bool plain = colours.size() == 1 && !side.partial;
    add_tile_label(group, at,
                   {holders_text(side.layout, tile.positions),
                    words.part ? slice_text(tile.box, request_.shape()) : "",
                    plain ? std::optional(*colours.begin()) : std::nullopt, words.whole});
  }

  Colour colour_of(const Tile& key) const {
    return category_colour(number_.at(key.positions), number_.size());
  }

  std::string tip(const Side& side, const Tile& tile, const Box& box, const Tile* was) const {
    std::int64_t element = size_bytes(request_.dtype());
    std::string ranks = holders_text(side.layout, tile.positions);
    std::string out = fmt::format("{} {}: {}, {}", tile.positions.size() == 1 ? "rank" : "ranks",
                                  shortened(ranks, tile.positions.size()), text(box),
                                  bytes_text(box.volume() * element));
    auto shard_of = [&](std::int32_t position) { return elements_held(side.layout, position); };
    std::int64_t shard = shard_of(tile.positions[0]);
    bool equal = std::all_of(tile.positions.begin(), tile.positions.end(),
                             [&](std::int32_t position) { return shard_of(position) == shard; });
    if (!side.joined && equal && shard != box.volume())
      out += fmt::format(" of {} each", bytes_text(shard * element));
    if (was != nullptr)
      out += fmt::format("; before on {}", shortened(holders_text(before_.layout, was->positions),
                                                     was->positions.size()));
    return out;
  }

  // Lines at 45 degrees, every 7 pixels along the edges.
  static void hatch(Node group, const Rectangle& at) {
    std::string lines;
    for (double along = 7; along < at.width + at.height; along += 7) {
      double from = std::min(along, at.height), to = std::min(along, at.width);
      lines += fmt::format("M{} {}L{} {}", coordinate_text(at.x + along - from),
                           coordinate_text(at.y + from), coordinate_text(at.x + to),
                           coordinate_text(at.y + along - to));
    }
    add(group, "path",
        {{"d", lines},
         {"stroke", "#000000"},
         {"stroke-opacity", "0.45"},
         {"pointer-events", "none"}});
  }

  std::vector<std::string> notes_below() const {
    std::vector<std::string> notes;
    notes.push_back(
        by_source_ ? "Each colour is the data of one shard before."
                   : "Each colour is the data of one shard after; before, the data was whole.");
    if (before_.partial || after_.partial)
      notes[0] += " Hatched: Partial; ranks joined by a sign hold addends of the same value.";
    if (before_.joined || after_.joined)
      notes.push_back("There are more shards than can be drawn, so neighbours share a box.");
    for (const Side* side : {&before_, &after_}) {
      std::vector<Rank> empty;
      for (std::int32_t position = 0; position < side->layout.mesh().size(); ++position)
        if (elements_held(side->layout, position) == 0)
          empty.push_back(side->layout.mesh().rank_at(position));
      if (!empty.empty())
        notes.push_back(fmt::format("Empty {}: {} {}.", side == &before_ ? "before" : "after",
                                    empty.size() == 1 ? "rank" : "ranks",
                                    shortened(ranks_text(empty), empty.size())));
    }
    if (view_.slices_in_all > static_cast<std::int64_t>(view_.slices.size()) &&
        !view_.slices.empty())
      notes.push_back(
          fmt::format("The first {} of {} slices.", view_.slices.size(), view_.slices_in_all));
    return notes;
  }

  const Request& request_;
  const TileView view_;
  const Side before_, after_;
  const bool by_source_;  // colours are by shards before; false: by shards after
  std::map<std::vector<std::int32_t>, std::size_t> number_;  // colour, by positions of a tile
};

}  // namespace

void draw_sharding(Node parent, const Request& request) {
  if (std::max(request.source().mesh().size(), request.destination().mesh().size()) > kMostRanks) {
    Node svg = add_picture(parent, kWidth, 40, request.text());
    add_text(svg, kFrame, 26, 13,
             fmt::format("More than {} ranks on one mesh: not drawn.", kMostRanks), "start",
             Tone::Soft);
    return;
  }
  ShardingPicture(request).draw(parent);
}

}  // namespace reshard::sim
