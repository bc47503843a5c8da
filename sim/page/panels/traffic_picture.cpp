// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/panels/panels.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/base/units.h"
#include "core/layout/mesh.h"
#include "sim/page/page.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kMostMatrixRows = 64, kFewestNodes = 9, kPairsListed = 12;
constexpr int kShades = 10;  // classes h0 .. h9 of the style
constexpr double kMatrixTop = 74, kMostSide = 540, kMostCell = 56, kBars = 52;
constexpr double kMatrixLetter = 7;  // maximum width of a name's letter
constexpr double kShade = 22, kShadesHeight = 12 + kShades * kShade;

struct Square {
  std::vector<std::vector<Rank>> rows;
  std::map<std::pair<std::size_t, std::size_t>, std::int64_t> bytes;  // (sender, receiver)
  std::vector<std::int64_t> sent, received;
  std::int64_t greatest = 0, greatest_sum = 0;
  std::int32_t devices = 1;   // per row
  double cell = 0, side = 0;  // in pixels
};

// Devices per row: one; if that gives too many rows, a whole node or several, or a part of one if
// whole nodes would leave too few rows.
std::int32_t devices_per_row(const std::vector<Rank>& ranks, const Topology& topology) {
  auto rows = [&](std::int32_t devices) {
    std::size_t count = 0;
    std::int32_t last = -1;
    for (Rank rank : ranks)
      if (std::exchange(last, to_int(rank) / devices) != to_int(rank) / devices) ++count;
    return count;
  };
  if (rows(1) <= kMostMatrixRows) return 1;
  std::int32_t devices =
      rows(topology.node().devices) >= kFewestNodes ? topology.node().devices : 2;
  while (rows(devices) > kMostMatrixRows) devices *= 2;
  return devices;
}

std::vector<std::vector<Rank>> rows_of(const std::vector<Rank>& ranks, std::int32_t devices) {
  std::vector<std::vector<Rank>> rows;
  for (Rank rank : ranks) {
    if (rows.empty() || to_int(rows.back().back()) / devices != to_int(rank) / devices)
      rows.emplace_back();
    rows.back().push_back(rank);
  }
  return rows;
}

Square square_of(std::span<const FlowSpan> flows, const Topology& topology) {
  std::map<std::pair<Rank, Rank>, std::int64_t> pairs;
  std::map<Rank, std::size_t> row_of;
  for (const FlowSpan& flow : flows) {
    pairs[{flow.source, flow.destination}] += flow.bytes;
    row_of[flow.source];
    row_of[flow.destination];
  }
  std::vector<Rank> ranks;
  for (const auto& [rank, row] : row_of) ranks.push_back(rank);
  Square out;
  out.devices = devices_per_row(ranks, topology);
  out.rows = rows_of(ranks, out.devices);
  for (std::size_t row = 0; row < out.rows.size(); ++row)
    for (Rank rank : out.rows[row]) row_of[rank] = row;
  auto count = static_cast<double>(out.rows.size());
  out.cell = std::min(kMostCell, kMostSide / count);
  out.side = out.cell * count;
  out.sent.resize(out.rows.size());
  out.received.resize(out.rows.size());
  for (const auto& [pair, bytes] : pairs) {
    std::size_t from = row_of[pair.first], to = row_of[pair.second];
    std::int64_t& cell = out.bytes[{from, to}];
    cell += bytes;
    out.greatest = std::max(out.greatest, cell);
    out.sent[from] += bytes;
    out.received[to] += bytes;
  }
  for (const std::vector<std::int64_t>* sums : {&out.sent, &out.received})
    for (std::int64_t bytes : *sums) out.greatest_sum = std::max(out.greatest_sum, bytes);
  return out;
}

std::string row_name(const Square& square, std::size_t row, const Topology& topology) {
  const std::vector<Rank>& ranks = square.rows[row];
  if (square.devices == 1) return fmt::format("rank {}", to_int(ranks.front()));
  if (square.devices < topology.node().devices)
    return fmt::format("ranks {}-{}", to_int(ranks.front()), to_int(ranks.back()));
  std::int32_t first = topology.node_of(ranks.front()), last = topology.node_of(ranks.back());
  return first == last ? fmt::format("node {}", first) : fmt::format("nodes {}-{}", first, last);
}

int shade_of(std::int64_t bytes, std::int64_t greatest) {
  return static_cast<int>((Int128{bytes} * kShades - 1) / greatest);
}

void draw_cells(Node svg, const Square& square, const Topology& topology) {
  Node cells = add(svg, "g", {{"class", "cells"}});
  add(cells, "rect",
      {{"class", "ground"},
       {"x", kPanelLeft},
       {"y", kMatrixTop},
       {"width", square.side},
       {"height", square.side}});
  // No gap between small cells.
  double shown = square.cell > 12 ? square.cell - 1 : square.cell;
  for (const auto& [at, bytes] : square.bytes) {
    if (bytes == 0) continue;
    Node rect = add(cells, "rect",
                    {{"class", fmt::format("h{}", shade_of(bytes, square.greatest))},
                     {"x", kPanelLeft + square.cell * static_cast<double>(at.second)},
                     {"y", kMatrixTop + square.cell * static_cast<double>(at.first)},
                     {"width", shown},
                     {"height", shown}});
    add_tip(rect, fmt::format("{} to {}\n{}", row_name(square, at.first, topology),
                              row_name(square, at.second, topology), bytes_text(bytes)));
  }
}

// Bars for what each row sends, to its right, and for what each column receives, above it.
void draw_sums(Node svg, const Square& square, const Topology& topology) {
  auto length = [&](std::int64_t bytes) {
    return (kBars - 4) * static_cast<double>(bytes) / static_cast<double>(square.greatest_sum);
  };
  Node bars = add(svg, "g", {{"class", "sums"}});
  double shown = square.cell > 12 ? square.cell - 1 : square.cell;
  for (std::size_t i = 0; i < square.rows.size(); ++i) {
    double along = square.cell * static_cast<double>(i);
    std::string name = row_name(square, i, topology);
    double wide = length(square.sent[i]), high = length(square.received[i]);
    add_tip(add(bars, "rect",
                {{"x", kPanelLeft + square.side + 4},
                 {"y", kMatrixTop + along},
                 {"width", wide},
                 {"height", shown}}),
            fmt::format("{} sends {}", name, bytes_text(square.sent[i])));
    add_tip(add(bars, "rect",
                {{"x", kPanelLeft + along},
                 {"y", kMatrixTop - 4 - high},
                 {"width", shown},
                 {"height", high}}),
            fmt::format("{} receives {}", name, bytes_text(square.received[i])));
  }
}

// How many rows or columns must share a name for names to be `apart` pixels from each other.
std::size_t every(double cell, double apart) {
  std::size_t out = 1;
  while (cell * static_cast<double>(out) < apart) out *= 2;
  return out;
}

void draw_names(Node svg, const Square& square, const Topology& topology) {
  auto middle = [&](std::size_t i) { return square.cell * (static_cast<double>(i) + 0.5); };
  Node names = add(svg, "g", {{"class", "names"}}), words = add(svg, "g", {{"class", "axis"}});
  for (std::size_t i = 0; i < square.rows.size(); i += every(square.cell, 14))
    add(names, "text", {{"x", kPanelLeft - 6}, {"y", kMatrixTop + middle(i) + 4}},
        row_name(square, i, topology));
  // Columns show only their number if the whole name is too wide; the last name is the widest.
  auto column_name = [&](std::size_t i) {
    std::string name = row_name(square, i, topology);
    return square.cell >= 50 ? name : name.substr(name.find(' ') + 1);
  };
  double widest =
      kMatrixLetter * static_cast<double>(column_name(square.rows.size() - 1).size() + 1);
  for (std::size_t i = 0; i < square.rows.size(); i += every(square.cell, widest))
    add(words, "text",
        {{"x", kPanelLeft + middle(i)},
         {"y", kMatrixTop + square.side + 15},
         {"text-anchor", "middle"}},
        column_name(i));
  add(words, "text",
      {{"x", kPanelLeft - 16}, {"y", kMatrixTop + square.side + 15}, {"text-anchor", "end"}}, "to");
  add(words, "text", {{"x", kPanelLeft - 6}, {"y", kMatrixTop - 8}, {"text-anchor", "end"}},
      "from");
  add(words, "text", {{"x", kPanelLeft}, {"y", 12}},
      fmt::format("received by each; a full bar is {}", bytes_text(square.greatest_sum)));
  add(words, "text", {{"x", kPanelLeft + square.side + 4}, {"y", kMatrixTop - 8}}, "sent by each");
}

void draw_shades(Node svg, const Square& square) {
  double x = kPanelLeft + square.side + kBars + 48, y = kMatrixTop + 12, size = kShade;
  Node legend = add(svg, "g", {{"class", "axis"}});
  add(legend, "text", {{"x", x}, {"y", kMatrixTop}}, "bytes per cell");
  for (int shade = 0; shade < kShades; ++shade) {
    double top = y + size * (kShades - 1 - shade);
    add(legend, "rect",
        {{"class", fmt::format("h{}", shade)},
         {"x", x},
         {"y", top},
         {"width", size},
         {"height", size}});
    add(legend, "text", {{"x", x + size + 8}, {"y", top + 5}},
        bytes_text(static_cast<std::int64_t>(Int128{square.greatest} * (shade + 1) / kShades)));
  }
  add(legend, "text", {{"x", x + size + 8}, {"y", y + size * kShades + 5}}, "0 B");
}

void list_pairs(Node panel, const Square& square, const Topology& topology) {
  std::vector<std::pair<std::pair<std::size_t, std::size_t>, std::int64_t>> pairs(
      square.bytes.begin(), square.bytes.end());
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::size_t shown = std::min(kPairsListed, pairs.size());
  HtmlTable table(add_folded(panel, "Numbers"),
                  fmt::format("The {} of {} pairs with the most traffic", shown, pairs.size()),
                  {"from", "to", ">bytes"});
  for (std::size_t i = 0; i < shown; ++i)
    table.add_row({row_name(square, pairs[i].first.first, topology),
                   row_name(square, pairs[i].first.second, topology),
                   Cell::bytes(pairs[i].second)});
}

}  // namespace

void draw_traffic(Node panel, std::span<const FlowSpan> flows, const Topology& topology) {
  Square square = square_of(flows, topology);
  if (square.greatest == 0) return;
  Node svg = add_chart(panel, kPanelWidth, kMatrixTop + std::max(square.side, kShadesHeight) + 22,
                       "bytes from each sender to each receiver");
  draw_cells(svg, square, topology);
  draw_sums(svg, square, topology);
  draw_names(svg, square, topology);
  draw_shades(svg, square);
  if (square.devices > 1)
    add(panel, "p", {{"class", "aside"}},
        fmt::format("Each row is {} devices; traffic among them is on the diagonal.",
                    square.devices));
  list_pairs(panel, square, topology);
}

}  // namespace reshard::sim
