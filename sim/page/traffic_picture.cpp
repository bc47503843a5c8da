// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/traffic_picture.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/units.h"
#include "core/layout/mesh.h"
#include "sim/page/html_table.h"
#include "sim/page/page.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kMostRows = 64, kFewestNodes = 9, kPairsListed = 12;
constexpr int kShades = 10;  // classes h0 .. h9 of the style
constexpr double kLeft = 92, kTop = 74, kSide = 560, kBars = 52, kLegend = 190;

struct Square {
  std::vector<std::vector<Rank>> rows;
  std::map<std::pair<std::size_t, std::size_t>, std::int64_t> bytes;  // (sender, receiver)
  std::vector<std::int64_t> sent, received;
  std::int64_t greatest = 0;
  std::int32_t devices = 1;  // to a row
};

// Devices to a row: one; of too many, whole nodes where that leaves enough rows, else a part of
// one.
std::int32_t devices_per_row(const std::vector<Rank>& ranks, const Topology& topology) {
  auto rows = [&](std::int32_t devices) {
    std::size_t count = 0;
    std::int32_t last = -1;
    for (Rank rank : ranks)
      if (std::exchange(last, to_int(rank) / devices) != to_int(rank) / devices) ++count;
    return count;
  };
  if (rows(1) <= kMostRows) return 1;
  std::int32_t devices =
      rows(topology.node().devices) >= kFewestNodes ? topology.node().devices : 2;
  while (rows(devices) > kMostRows) devices *= 2;
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

void draw_cells(Node svg, const Square& square, double cell, const Topology& topology) {
  Node cells = add(svg, "g", {{"class", "cells"}});
  add(cells, "rect",
      {{"class", "ground"}, {"x", kLeft}, {"y", kTop}, {"width", kSide}, {"height", kSide}});
  // No gap where it would be wider than what it parts.
  double shown = cell > 6 ? cell - 1 : cell;
  for (const auto& [at, bytes] : square.bytes) {
    if (bytes == 0) continue;
    Node rect = add(cells, "rect",
                    {{"class", fmt::format("h{}", shade_of(bytes, square.greatest))},
                     {"x", kLeft + cell * static_cast<double>(at.second)},
                     {"y", kTop + cell * static_cast<double>(at.first)},
                     {"width", shown},
                     {"height", shown}});
    add_tip(rect, fmt::format("{} to {}\n{}", row_name(square, at.first, topology),
                              row_name(square, at.second, topology), bytes_text(bytes)));
  }
}

// What each row sends, right of it, and what each column receives, above it.
void draw_sums(Node svg, const Square& square, double cell, const Topology& topology) {
  std::int64_t most = 1;
  for (std::int64_t bytes : square.sent) most = std::max(most, bytes);
  for (std::int64_t bytes : square.received) most = std::max(most, bytes);
  auto length = [&](std::int64_t bytes) {
    return (kBars - 4) * static_cast<double>(bytes) / static_cast<double>(most);
  };
  Node bars = add(svg, "g", {{"class", "sums"}});
  double shown = cell > 6 ? cell - 1 : cell;
  for (std::size_t i = 0; i < square.rows.size(); ++i) {
    double along = cell * static_cast<double>(i);
    std::string name = row_name(square, i, topology);
    double wide = length(square.sent[i]), high = length(square.received[i]);
    add_tip(
        add(bars, "rect",
            {{"x", kLeft + kSide + 4}, {"y", kTop + along}, {"width", wide}, {"height", shown}}),
        fmt::format("{} sends {}", name, bytes_text(square.sent[i])));
    add_tip(add(bars, "rect",
                {{"x", kLeft + along}, {"y", kTop - 4 - high}, {"width", shown}, {"height", high}}),
            fmt::format("{} receives {}", name, bytes_text(square.received[i])));
  }
}

// Every row's name where there is room, else every second, fourth, ..
void draw_names(Node svg, const Square& square, double cell, const Topology& topology) {
  Node names = add(svg, "g", {{"class", "names"}});
  std::size_t every = 1;
  while (cell * static_cast<double>(every) < 14) every *= 2;
  for (std::size_t i = 0; i < square.rows.size(); i += every)
    add(names, "text", {{"x", kLeft - 6}, {"y", kTop + cell * (static_cast<double>(i) + 0.5) + 4}},
        row_name(square, i, topology));
  Node words = add(svg, "g", {{"class", "axis"}});
  add(words, "text", {{"x", kLeft - 6}, {"y", kTop - 10}, {"text-anchor", "end"}}, "sender");
  add(words, "text", {{"x", kLeft}, {"y", 14}}, "receivers in the same order: received");
  add(words, "text", {{"x", kLeft + kSide + 4}, {"y", kTop - 10}}, "sent");
}

void draw_shades(Node svg, std::int64_t greatest) {
  double x = kLeft + kSide + kBars + 28, y = kTop + 12, size = 22;
  Node legend = add(svg, "g", {{"class", "axis"}});
  add(legend, "text", {{"x", x}, {"y", kTop}}, "bytes of a cell");
  for (int shade = 0; shade < kShades; ++shade) {
    double top = y + size * (kShades - 1 - shade);
    add(legend, "rect",
        {{"class", fmt::format("h{}", shade)},
         {"x", x},
         {"y", top},
         {"width", size},
         {"height", size}});
    add(legend, "text", {{"x", x + size + 8}, {"y", top + 5}},
        bytes_text(static_cast<std::int64_t>(Int128{greatest} * (shade + 1) / kShades)));
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
                  fmt::format("The {} of {} pairs that most goes between", shown, pairs.size()),
                  {"from", "to", ">bytes"});
  for (std::size_t i = 0; i < shown; ++i)
    table.add_row({row_name(square, pairs[i].first.first, topology),
                   row_name(square, pairs[i].first.second, topology),
                   {bytes_text(pairs[i].second), pairs[i].second}});
}

}  // namespace

void draw_traffic(Node panel, std::span<const FlowSpan> flows, const Topology& topology) {
  Square square = square_of(flows, topology);
  if (square.greatest == 0) return;
  double cell = kSide / static_cast<double>(square.rows.size());
  Node svg = add_svg(add_picture(panel), kLeft + kSide + kBars + kLegend, kTop + kSide + 8,
                     "bytes from each sender to each receiver");
  svg.append_attribute("class") = "square";
  draw_cells(svg, square, cell, topology);
  draw_sums(svg, square, cell, topology);
  draw_names(svg, square, cell, topology);
  draw_shades(svg, square.greatest);
  if (square.devices > 1)
    add(panel, "p", {{"class", "aside"}},
        fmt::format("The ranks of {} devices are one row; what goes between them lies on the "
                    "diagonal.",
                    square.devices));
  list_pairs(panel, square, topology);
}

}  // namespace reshard::sim
