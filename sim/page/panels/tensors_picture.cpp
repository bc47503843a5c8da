// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/panels/panels.h"

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include "core/base/units.h"
#include "core/layout/mesh.h"
#include "sim/page/page.h"
#include "sim/page/panels/time_axis.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kMostTensorBars = 24, kMostTensorRows = 500;
constexpr double kTensorTop = 8, kTensorBottom = 28, kTensorBar = 12, kTensorName = 16,
                 kTensorGap = 8;

void draw_bar(Node svg, Node names, const TimeScale& scale, const TensorBar& bar, double y) {
  add(svg, "text", {{"x", scale.left + 2}, {"y", y + kTensorName - 4}}, bar.name);
  add(names, "text", {{"x", scale.left - 8}, {"y", y + kTensorName + kTensorBar - 2}},
      bytes_text(bar.use.received_bytes));
  if (!bar.use.first_ps || !bar.use.last_ps) return;
  std::int64_t first = *bar.use.first_ps, last = *bar.use.last_ps;
  std::string tip = fmt::format("{}\n{} to {}; alone at least {}", bar.name, duration_text(first),
                                duration_text(last), duration_text(bar.bound_ps));
  for (const auto& [style, end] :
       {std::pair("other", last), std::pair("taken", std::min(last, first + bar.bound_ps))})
    add_tip(add(svg, "rect",
                {{"class", style},
                 {"x", scale.x(first)},
                 {"y", y + kTensorName},
                 {"width", std::max(scale.x(end) - scale.x(first), 0.3)},
                 {"height", kTensorBar}}),
            tip);
}

}  // namespace

void draw_tensor_bars(Node panel, const std::vector<TensorBar>& bars, std::int64_t end_ps) {
  if (bars.empty() || end_ps == 0) return;
  std::size_t shown = std::min(kMostTensorBars, bars.size());
  TimeScale scale = time_scale(end_ps);
  double bottom = kTensorTop + static_cast<double>(shown) * (kTensorName + kTensorBar + kTensorGap);
  Node svg = add_chart(panel, kTimeWidth, bottom + kTensorBottom, "when each kind of tensor moves");
  draw_time_axis(svg, scale, kTensorTop, bottom);
  Node names = add(svg, "g", {{"class", "names"}});
  double y = kTensorTop;
  for (std::size_t i = 0; i < shown; ++i, y += kTensorName + kTensorBar + kTensorGap)
    draw_bar(svg, names, scale, bars[i], y);
  Legend legend(panel);
  legend.add_entry("other", "from its first byte to its last");
  legend.add_entry("taken", "the least that it needs alone");
  if (shown < bars.size())
    add(panel, "p", {{"class", "aside"}},
        fmt::format("The first {} of {} are drawn.", shown, bars.size()));
}

void draw_kinds(Node panel, const std::vector<GroupFacts>& kinds, std::int64_t end_ps) {
  std::vector<TensorBar> bars;
  auto count_of = [](const GroupFacts& kind) {
    return static_cast<std::int64_t>(kind.tensors.size());
  };
  auto name_of = [](const GroupFacts& kind) { return kind.name.empty() ? kind.text : kind.name; };
  for (const GroupFacts& kind : kinds)
    bars.push_back({kind.tensors.size() == 1
                        ? name_of(kind)
                        : fmt::format("{} x {}", kind.tensors.size(), name_of(kind)),
                    kind.use, kind.bound.time_ps()});
  draw_tensor_bars(panel, bars, end_ps);
  std::size_t shown = std::min(kMostTensorRows, kinds.size());
  std::string caption =
      fmt::format("{} of {}", shown, counted(static_cast<std::int64_t>(kinds.size()), "kind"));
  HtmlTable figures(panel, caption,
                    {"tensors", ">count", ">bytes", ">received", ">least", ">first byte",
                     ">last byte", ">bound, alone", "limit"});
  HtmlTable layouts(add_folded(panel, "Layouts and ranks"), caption,
                    {"tensors", "request", "from ranks", "to ranks"});
  for (std::size_t i = 0; i < shown; ++i) {
    const GroupFacts& kind = kinds[i];
    figures.add_row({name_of(kind), Cell::count(count_of(kind)), Cell::bytes(kind.bytes),
                     Cell::bytes(kind.use.received_bytes), Cell::bytes(kind.least_received_bytes),
                     Cell::time(kind.use.first_ps), Cell::time(kind.use.last_ps),
                     Cell::time(kind.bound.time_ps()), text(kind.bound.limited_by())});
    layouts.add_row(
        {kind.name, kind.text, ranks_text(kind.source_ranks), ranks_text(kind.destination_ranks)});
  }
}

}  // namespace reshard::sim
