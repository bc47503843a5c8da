// SPDX-License-Identifier: BSD-3-Clause
#include "sim/picture/topology/node_picture.h"

#include <algorithm>

#include <fmt/core.h>

#include "sim/picture/drawing.h"

namespace reshard::sim {
namespace {

constexpr std::int32_t kMostInRow = 18;
constexpr double kLabel = 11, kName = 10;  // sizes of texts

void ink_bar(Node bar, const LinkInk& ink, ResourceId link, PathClass path_class) {
  set(bar, {"class", "link"});
  if (auto colour = ink.colour(link, path_class))
    fill(bar, *colour);
  else
    fill(bar, Tone::Panel);
  if (ink.by_load()) stroke(bar, Tone::Edge, 1);  // the brightest and darkest need an outline
}

}  // namespace

NodePicture::NodePicture(const Topology& topology, const NodeLinks& links, const LinkInk& ink)
    : topology_(topology), links_(links), ink_(ink), rows_(rows_of(topology, links)) {
  folds_ = (links.devices + kMostInRow - 1) / kMostInRow;
  columns_ = (links.devices + folds_ - 1) / folds_;
  if (columns_ > 8) pitch_ = 48;
}

double NodePicture::bars_height() const {
  double out = 0;
  for (const LinkRow& row : rows_) out += row_height(row);
  return out;
}

double NodePicture::width() const { return columns_ * pitch_ + 2 * kPadding; }
double NodePicture::height() const { return kPadding + folds_ * fold_height() + kFoot; }

double NodePicture::label_width() const {
  double out = 0;
  for (const LinkRow& row : rows_) out = std::max(out, text_width(row.label, kLabel) + 8);
  return out;
}

double NodePicture::outside_height() const {
  auto fabric = std::count_if(links_.links.begin(), links_.links.end(),
                              [](const auto& l) { return l.fabric; });
  return static_cast<double>(fabric) * kOutsideRow;
}

double NodePicture::row_y(std::size_t row, int fold) const {
  double y = device_y(fold);
  for (std::size_t r = 0; r <= row; ++r) y -= row_height(rows_[r]);
  return y;
}

// From every GPU up to the last bar that it reaches.
void NodePicture::draw_guides(Node parent) const {
  std::vector<double> top(to_index(links_.devices));
  for (std::int32_t d = 0; d < links_.devices; ++d) top[to_index(d)] = device_y(d / columns_);
  for (std::size_t row = 0; row < rows_.size(); ++row)
    for (std::size_t bar : rows_[row].bars)
      for (std::int32_t d : devices_of(rows_[row], bar))
        top[to_index(d)] = row_y(row, d / columns_) + row_height(rows_[row]) - 6;
  for (std::int32_t d = 0; d < links_.devices; ++d) {
    std::string path =
        fmt::format("M{} {}V{}", coordinate_text(column_x(d) + pitch_ / 2),
                    coordinate_text(device_y(d / columns_)), coordinate_text(top[to_index(d)]));
    stroke(add(parent, "path", {{"d", path}, {"fill", "none"}}), Tone::Edge, 1.2);
  }
}

const std::vector<std::int32_t>& NodePicture::devices_of(const LinkRow& row,
                                                         std::size_t bar) const {
  bool meets = row.of == LinkRow::Of::Meetings;
  return meets ? links_.meetings[bar].devices : links_.links[bar].devices;
}

// A bar from the first GPU to the last; where it passes others, points mark those that are its own.
void NodePicture::draw_bar(Node parent, std::int32_t node, std::size_t row, std::size_t bar) const {
  const LinkRow& of = rows_[row];
  const std::vector<std::int32_t>& devices = devices_of(of, bar);
  const std::int32_t first = devices.front(), last = devices.back();
  const bool passes = last - first + 1 > static_cast<std::int32_t>(devices.size());
  const NodeLinks::Link* link =
      of.of == LinkRow::Of::Meetings ? nullptr : &links_.links[bar];  // null: nothing to fill
  const ResourceId id = link ? link->in(topology_, node) : ResourceId{};
  const double thick = link ? ink_.width(id) : 5;
  Node group = add(parent, "g", {{"class", "bar"}});
  add_tip(group, link ? ink_.tip(id) : fmt::format("{} GPUs {}", devices.size(), of.label));
  for (int fold = first / columns_; fold <= last / columns_; ++fold) {
    std::int32_t low = std::max(first, fold * columns_),
                 high = std::min(last, (fold + 1) * columns_ - 1);
    double x = column_x(low) + 4, wide = column_x(high) + pitch_ - 4 - x,
           bottom = row_y(row, fold) + row_height(of) - 3;
    Node box = add_rectangle(group, x, bottom - thick, wide, thick);
    if (link) {
      ink_bar(box, ink_, id, link->path_class);
    } else {
      fill(box, Tone::Edge);
    }
    for (std::int32_t d : devices)
      if (passes && d >= low && d <= high)
        fill(add(group, "circle",
                 {{"cx", coordinate_text(column_x(d) + pitch_ / 2)},
                  {"cy", coordinate_text(bottom - thick / 2)},
                  {"r", coordinate_text(std::max(3.0, thick / 2 + 1))}}),
             Tone::Ink);
    if (of.of != LinkRow::Of::Shared) continue;
    std::string name = topology_.hop_name(topology_.hop_of(id));
    if (text_width(name, kName) < wide)
      add_text(group, x, bottom - thick - 3, kName, name, "start", Tone::Soft);
  }
}

void NodePicture::draw_device(Node parent, std::int32_t node, std::int32_t device) const {
  double x = column_x(device) + 4, y = device_y(device / columns_), width = pitch_ - 8;
  std::int32_t rank = node * topology_.node().devices + device;
  Node group = add(parent, "g", {{"class", "device"}});
  add_tip(group, fmt::format("rank {}: node{}.gpu{}", rank, node, device));
  Node box = add_rectangle(group, x, y, width, kDevice);
  set(box, {"rx", 5});
  fill(box, Tone::Paper);
  stroke(box, Tone::Ink, 1.4);
  add_text(group, x + width / 2, y + 13, 10, "GPU", "middle", Tone::Soft);
  add_heading(group, x + width / 2, y + 29, 14, std::to_string(rank), "middle");
}

void NodePicture::draw(Node parent, std::int32_t node, double x, double y) const {
  Node group =
      add(parent, "g",
          {{"class", "node"},
           {"transform", fmt::format("translate({} {})", coordinate_text(x), coordinate_text(y))}});
  Node box = add_rectangle(group, 0, 0, width(), height());
  set(box, {"rx", 8});
  fill(box, Tone::Paper);
  stroke(box, Tone::Edge, 1.2);
  draw_guides(group);
  for (std::size_t row = 0; row < rows_.size(); ++row)
    for (std::size_t bar : rows_[row].bars) draw_bar(group, node, row, bar);
  for (std::int32_t device = 0; device < links_.devices; ++device) draw_device(group, node, device);
  add_heading(group, kPadding + 4, height() - 9, 12, fmt::format("node{}", node), "start",
              Tone::Soft);
}

void NodePicture::draw_labels(Node parent, double x, double y) const {
  for (int fold = 0; fold < folds_; ++fold)
    for (std::size_t row = 0; row < rows_.size(); ++row)
      add_text(parent, x - 8, y + row_y(row, fold) + row_height(rows_[row]) - 3, kLabel,
               rows_[row].label, "end", Tone::Soft);
}

void NodePicture::draw_outside(Node parent, double x, double width, double y) const {
  double at = y - outside_height();
  for (const NodeLinks::Link& link : links_.links) {
    if (!link.fabric) continue;
    const ResourceId id = link.in(topology_, 0);
    const double thick = ink_.width(id);
    Node group = add(parent, "g", {{"class", "bar"}});
    add_tip(group, ink_.tip(id));
    ink_bar(add_rectangle(group, x, at + 26 - thick, width, thick), ink_, id, link.path_class);
    add_text(
        group, x, at + 26 - thick - 4, kLabel,
        fmt::format("{}, {}, {}", topology_.hop_name(topology_.hop_of(id)), text(link.path_class),
                    short_rate_text(topology_.resource_bytes_per_s(id))),
        "start", Tone::Soft);
    at += kOutsideRow;
  }
}

}  // namespace reshard::sim
