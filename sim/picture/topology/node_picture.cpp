// SPDX-License-Identifier: BSD-3-Clause
#include "sim/picture/topology/node_picture.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/picture/drawing.h"

namespace reshard::sim {
namespace {

using Kind = Wiring::Spot::Kind;

constexpr std::int32_t kMostInRow = 18;

std::string vertical(double x, double from, double to) {
  return fmt::format("M{} {}V{}", coordinate_text(x), coordinate_text(from), coordinate_text(to));
}

std::string horizontal(double y, double from, double to) {
  return fmt::format("M{} {}H{}", coordinate_text(from), coordinate_text(y), coordinate_text(to));
}

}  // namespace

NodePicture::NodePicture(const Topology& topology, const Wiring& wiring, const LinkInk& ink)
    : topology_(topology),
      wiring_(wiring),
      ink_(ink),
      places_(places_of(wiring)),
      up_(wiring.spots.size()),
      down_(wiring.spots.size()) {
  for (std::size_t s = 0; s < places_.size(); ++s) {
    std::int32_t track = places_[s].track;
    if (!wiring_.spots[s].outside) inside_ = std::max(inside_, track);
    top_ = std::max(top_, track);
    below_ = std::max(below_, -track);
  }
  sort_joins();
  fold();
}

void NodePicture::sort_joins() {
  auto track = [&](std::int32_t spot) { return places_[to_index(spot)].track; };
  auto add_join = [&](std::int32_t a, std::int32_t b, std::int32_t cable) {
    if (track(a) > track(b)) std::swap(a, b);
    if (track(a) < 0)
      down_[to_index(b)].push_back({cable, a});
    else
      up_[to_index(a)].push_back({cable, b});
  };
  for (std::size_t c = 0; c < wiring_.cables.size(); ++c) {
    const Wiring::Cable& cable = wiring_.cables[c];
    auto number = static_cast<std::int32_t>(c);
    if (cable.from < wiring_.devices && cable.to < wiring_.devices) {
      arcs_.push_back(number);
      down_[to_index(cable.from)].push_back({number, cable.to});
      down_[to_index(cable.to)].push_back({number, cable.from});
    } else {
      add_join(cable.from, cable.to, number);
    }
  }
  for (auto [a, b] : wiring_.touching)
    if (a >= wiring_.devices || !places_[to_index(b)].touches_all) add_join(a, b, -1);
  for (auto& joins : up_)
    std::stable_sort(joins.begin(), joins.end(),
                     [&](const Join& a, const Join& b) { return track(a.other) < track(b.other); });
  // Arcs of a device do not cross if those to its left come first, and on each side the arcs to
  // nearer devices are further out.
  for (std::int32_t device = 0; device < wiring_.devices; ++device) {
    auto& joins = down_[to_index(device)];
    auto key = [&](const Join& join) { return std::pair(join.other > device, -join.other); };
    std::stable_sort(joins.begin(), joins.end(),
                     [&](const Join& a, const Join& b) { return key(a) < key(b); });
  }
}

bool NodePicture::can_fold() const {
  if (wiring_.devices <= kMostInRow || !arcs_.empty()) return false;
  return std::all_of(places_.begin() + wiring_.devices, places_.end(), [&](const SpotPlace& place) {
    return place.low == 0 && place.high == wiring_.devices;
  });
}

void NodePicture::fold() {
  columns_ = std::max(1, wiring_.devices);
  folded_ = can_fold();
  if (folded_) {
    rows_ = (wiring_.devices + kMostInRow - 1) / kMostInRow;
    columns_ = (wiring_.devices + rows_ - 1) / rows_;
  }
  if (columns_ > 8) pitch_ = 48;
}

double NodePicture::arc_depth(std::int32_t a, std::int32_t b) const {
  double apart = std::abs(a - b);
  return 14 + 11 * std::min(apart, 12.0) + 2 * std::max(0.0, apart - 12);
}

double NodePicture::row_height() const {
  double deepest = 0;
  for (std::int32_t c : arcs_) {
    const Wiring::Cable& cable = wiring_.cables[to_index(c)];
    deepest = std::max(deepest, arc_depth(cable.from, cable.to));
  }
  return kDevice + (deepest > 0 ? deepest + 12 : 0) + below_ * kTrack;
}

double NodePicture::width() const {
  double trunks = folded_ ? 6 * static_cast<double>(places_.size() - to_index(wiring_.devices)) : 0;
  return columns_ * pitch_ + 2 * kPadding + trunks;
}

double NodePicture::height() const {
  double more = rows_ > 1 ? (rows_ - 1) * (row_height() + top_ * kTrack + kPadding) : 0;
  return kStrip + inside_ * kTrack + row_height() + more + kFoot;
}

double NodePicture::outside_height() const { return (top_ - inside_) * kTrack; }

// Relative to the box, like all functions below.
double NodePicture::device_y(int row) const {
  return kStrip + inside_ * kTrack + row * (row_height() + top_ * kTrack + kPadding);
}

double NodePicture::bar_y(std::int32_t track, int row) const {
  if (track < 0) return device_y(row) + row_height() + track * kTrack + (kTrack - kBar);
  double y = device_y(row) - track * kTrack;
  return row == 0 && track > inside_ ? y - kStrip + (kTrack - kBar) / 2 : y;
}

double NodePicture::slot_x(std::int32_t spot, const std::vector<Join>& joins,
                           std::size_t index) const {
  const SpotPlace& place = places_[to_index(spot)];
  double part = (static_cast<double>(index) + 1) / (static_cast<double>(joins.size()) + 1);
  if (spot < wiring_.devices) {
    double column = folded_ ? spot % columns_ : spot;
    return kPadding + (column + 0.5) * pitch_ + (part - 0.5) * (pitch_ - 8);
  }
  // Bars above each other have the same centre; cables up from them must not coincide.
  double low = folded_ ? 0 : place.low, high = folded_ ? columns_ : place.high;
  return kPadding + std::min((low + (high - low) * part) * pitch_ + 13 * (place.track - 1),
                             high * pitch_ - 10);
}

std::string NodePicture::name_of(std::int32_t spot) const {
  const Wiring::Spot& what = wiring_.spots[to_index(spot)];
  if (what.kind == Kind::Shared)
    return topology_.hop_name(topology_.hop_of(what.link->in(topology_, 0)));
  if (what.outside) return "network";
  const SpotPlace& place = places_[to_index(spot)];
  if (*what.path_class == PathClass::NET) return place.touches_all ? "NICs" : "leaf switch";
  if (*what.path_class <= PathClass::NVB) return place.high - place.low > 2 ? "NVSwitch" : "NVLink";
  for (const DeviceGroup& group : topology_.node().groups)
    if (!group.devices.empty() && group.devices.front() == place.low &&
        group.devices.back() + 1 == place.high &&
        static_cast<double>(group.devices.size()) == place.high - place.low &&
        group.devices.size() > 1)
      return group.name;
  switch (*what.path_class) {
    case PathClass::C2C:
    case PathClass::P2C:
      return "C2C";
    case PathClass::PIX:
    case PathClass::PXB:
    case PathClass::PXN:
      return "PCIe switch";
    default:
      return "host";
  }
}

// Draws both directions next to each other, `there` on the left.
void NodePicture::draw_cable(Node parent, const Wiring::Cable& cable, std::int32_t node,
                             const PathAt& path) const {
  ResourceId there = cable.there.in(topology_, node);
  double first = ink_.width(there), second = 0;
  if (cable.back) second = ink_.width(cable.back->in(topology_, node)) + 1;
  auto draw_one = [&](ResourceId link, double offset) {
    Node line = add(parent, "path", {{"class", "link"}, {"d", path(offset)}, {"fill", "none"}});
    if (auto colour = ink_.colour(link, cable.path_class))
      stroke(line, *colour, ink_.width(link));
    else
      stroke(line, Tone::Panel, ink_.width(link));
    add_tip(line, ink_.tip(link));
  };
  if (ink_.by_load()) {  // the brightest and the darkest colours need an outline
    Node edge = add(parent, "path", {{"d", path(0)}, {"fill", "none"}});
    stroke(edge, Tone::Edge, first + second + 2);
  }
  draw_one(there, -second / 2);
  if (cable.back) draw_one(cable.back->in(topology_, node), (first + 1) / 2);
}

void NodePicture::draw_join(Node parent, const Join& join, std::int32_t node,
                            const PathAt& path) const {
  if (join.cable >= 0) return draw_cable(parent, wiring_.cables[to_index(join.cable)], node, path);
  Node line = add(parent, "path", {{"d", path(0)}, {"fill", "none"}, {"stroke-dasharray", "3 3"}});
  stroke(line, Tone::Edge, 1.2);
}

// Connections from a spot upwards, and from devices to bars below them.
void NodePicture::draw_joins(Node parent, std::int32_t node, std::int32_t spot) const {
  int row = row_of(spot);
  const SpotPlace& place = places_[to_index(spot)];
  double top = place.track == 0 ? device_y(row) : bar_y(place.track, row);
  const std::vector<Join>& up = up_[to_index(spot)];
  for (std::size_t i = 0; i < up.size(); ++i) {
    const SpotPlace& other = places_[to_index(up[i].other)];
    double x = slot_x(spot, up, i), to = bar_y(other.track, row) + kBar;
    double left = kPadding + std::min(place.high, other.high) * pitch_ - 5,
           right = kPadding + std::max(place.low, other.low) * pitch_ + 5;
    // The other bar need not be above this point; the line then turns towards it.
    double begin = kPadding + (folded_ ? 0 : other.low) * pitch_,
           end = kPadding + (folded_ ? columns_ : other.high) * pitch_;
    draw_join(parent, up[i], node, [&](double offset) {
      if (other.track == place.track) return horizontal(top + kBar / 2 + offset, left, right);
      if (begin < x && x < end) return vertical(x + offset, top, to);
      return vertical(x + offset, top, to - kBar / 2 + offset) + "H" +
             coordinate_text(x <= begin ? begin + 5 : end - 5);
    });
  }
  const std::vector<Join>& down = down_[to_index(spot)];
  for (std::size_t i = 0; i < down.size(); ++i) {
    if (down[i].other < wiring_.devices) continue;
    double x = slot_x(spot, down, i), to = bar_y(places_[to_index(down[i].other)].track, row);
    draw_join(parent, down[i], node,
              [&](double offset) { return vertical(x + offset, top + kDevice, to); });
  }
}

void NodePicture::draw_arcs(Node parent, std::int32_t node) const {
  auto slot = [&](std::int32_t device, std::int32_t cable) {
    const std::vector<Join>& joins = down_[to_index(device)];
    auto found = std::find_if(joins.begin(), joins.end(),
                              [&](const Join& join) { return join.cable == cable; });
    return slot_x(device, joins, to_index(found - joins.begin()));
  };
  double y = device_y(0) + kDevice;
  for (std::int32_t c : arcs_) {
    const Wiring::Cable& cable = wiring_.cables[to_index(c)];
    double low = slot(cable.from, c), high = slot(cable.to, c);
    if (low > high) std::swap(low, high);
    draw_cable(parent, cable, node, [&](double offset) {
      // A cubic curve reaches three quarters of the way to its control points.
      double control = y + (arc_depth(cable.from, cable.to) + offset) * 4 / 3;
      return fmt::format("M{0} {2}C{0} {3} {1} {3} {1} {2}", coordinate_text(low - offset),
                         coordinate_text(high + offset), coordinate_text(y),
                         coordinate_text(control));
    });
  }
}

void NodePicture::draw_plate(Node parent, std::int32_t spot, std::int32_t node, double x, double y,
                             double width) const {
  const Wiring::Spot& what = wiring_.spots[to_index(spot)];
  Node plate = add_rectangle(parent, x, y, width, kBar);
  set(plate, {"rx", 4});
  fill(plate, Tone::Panel);
  stroke(plate, Tone::Edge, 1);
  std::string name = name_of(spot);
  double base = y + 15;
  if (what.link) {
    ResourceId link = what.link->in(topology_, node);
    name += fmt::format(" {}", short_rate_text(topology_.resource_bytes_per_s(link)));
    double high = ink_.width(link);
    Node stripe = add_rectangle(parent, x + 1, y + kBar - high - 1, width - 2, high);
    set(stripe, {"class", "link"});
    if (auto colour = ink_.colour(link, *what.path_class))
      fill(stripe, *colour);
    else
      fill(stripe, Tone::Panel);
    base -= high / 2;
  }
  if (text_width(name, 11) < width - 4)
    set(add_text(parent, x + width / 2, base, 11, name, "middle"), {"pointer-events", "none"});
}

// With folded rows a bar has a part in each row; this line connects them.
void NodePicture::draw_trunk(Node parent, std::int32_t spot) const {
  double right = kPadding + columns_ * pitch_ - 3, x = right + 5 + 6 * (spot - wiring_.devices);
  std::string path;
  for (std::int32_t row = 0; row < rows_; ++row) {
    double y = bar_y(places_[to_index(spot)].track, row) + kBar / 2;
    std::string to = coordinate_text(x);
    path += row == 0 ? fmt::format("M{} {}H{}", coordinate_text(right), coordinate_text(y), to)
                     : fmt::format("V{}H{}M{} {}", coordinate_text(y), coordinate_text(right), to,
                                   coordinate_text(y));
  }
  stroke(add(parent, "path", {{"d", path}, {"fill", "none"}}), Tone::Edge, 2);
}

void NodePicture::draw_bar(Node parent, std::int32_t node, std::int32_t spot) const {
  const Wiring::Spot& what = wiring_.spots[to_index(spot)];
  const SpotPlace& place = places_[to_index(spot)];
  Node group = add(parent, "g", {{"class", "bar"}});
  add_tip(group, what.link ? ink_.tip(what.link->in(topology_, node)) : name_of(spot));
  if (rows_ > 1) draw_trunk(group, spot);
  for (int row = what.outside ? 1 : 0; row < rows_; ++row) {
    double low = folded_ ? 0 : place.low, high = folded_ ? columns_ : place.high;
    draw_plate(group, spot, node, kPadding + low * pitch_ + 3, bar_y(place.track, row),
               (high - low) * pitch_ - 6);
  }
}

void NodePicture::draw_device(Node parent, std::int32_t node, std::int32_t device) const {
  double x = kPadding + (folded_ ? device % columns_ : device) * pitch_ + 4,
         y = device_y(row_of(device)), width = pitch_ - 8;
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
  auto spots = static_cast<std::int32_t>(places_.size());
  for (std::int32_t spot = 0; spot < spots; ++spot)
    if (!wiring_.spots[to_index(spot)].outside) draw_joins(group, node, spot);
  draw_arcs(group, node);
  for (std::int32_t spot = wiring_.devices; spot < spots; ++spot)
    if (!wiring_.spots[to_index(spot)].outside || rows_ > 1) draw_bar(group, node, spot);
  for (std::int32_t device = 0; device < wiring_.devices; ++device)
    draw_device(group, node, device);
  add_heading(group, kPadding + 4, height() - 9, 12, fmt::format("node{}", node), "start",
              Tone::Soft);
}

void NodePicture::draw_outside(Node parent, std::int32_t spot, double x, double width,
                               double y) const {
  const Wiring::Spot& what = wiring_.spots[to_index(spot)];
  Node group = add(parent, "g", {{"class", "bar"}});
  add_tip(group, what.link ? ink_.tip(what.link->in(topology_, 0)) : name_of(spot));
  draw_plate(group, spot, 0, x, y + bar_y(places_[to_index(spot)].track, 0), width);
}

}  // namespace reshard::sim
