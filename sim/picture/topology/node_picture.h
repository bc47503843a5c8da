// SPDX-License-Identifier: BSD-3-Clause
// One node of a machine as it is wired: bars on tracks, with straight cables between them.
//
// If there are many devices and every bar spans all of them, they are folded into rows, each with
// its part of every bar.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/picture/topology/link_ink.h"
#include "sim/picture/topology/wiring.h"

namespace reshard::sim {

class NodePicture {
 public:
  NodePicture(const Topology& topology, const Wiring& wiring, const LinkInk& ink);

  double width() const;
  double height() const;
  // Height of the bars outside the node, above its box.
  double outside_height() const;
  // A node's box with its upper left corner at (x, y), and its cables to the outside bars.
  void draw(Node parent, std::int32_t node, double x, double y) const;
  // An outside bar, above boxes with their upper edge at y.
  void draw_outside(Node parent, std::int32_t spot, double x, double width, double y) const;

 private:
  // A connection of a spot on one side: a cable, or -1 for spots that only touch.
  struct Join {
    std::int32_t cable, other;
  };
  // The path of a line, `offset` pixels beside the centre of its cable.
  using PathAt = std::function<std::string(double offset)>;

  void sort_joins();
  void fold();
  bool can_fold() const;
  std::string name_of(std::int32_t spot) const;
  double bar_y(std::int32_t track, int row) const;
  double device_y(int row) const;
  double slot_x(std::int32_t spot, const std::vector<Join>& joins, std::size_t index) const;
  int row_of(std::int32_t spot) const {
    return folded_ && spot < wiring_.devices ? spot / columns_ : 0;
  }
  double arc_depth(std::int32_t a, std::int32_t b) const;
  double row_height() const;

  void draw_join(Node parent, const Join& join, std::int32_t node, const PathAt& path) const;
  void draw_joins(Node parent, std::int32_t node, std::int32_t spot) const;
  void draw_arcs(Node parent, std::int32_t node) const;
  void draw_cable(Node parent, const Wiring::Cable& cable, std::int32_t node,
                  const PathAt& path) const;
  void draw_trunk(Node parent, std::int32_t spot) const;
  void draw_bar(Node parent, std::int32_t node, std::int32_t spot) const;
  void draw_device(Node parent, std::int32_t node, std::int32_t device) const;
  void draw_plate(Node parent, std::int32_t spot, std::int32_t node, double x, double y,
                  double width) const;

  static constexpr double kPadding = 14, kTrack = 56, kBar = 22, kDevice = 36, kStrip = 20,
                          kFoot = 30;

  const Topology& topology_;
  const Wiring& wiring_;
  const LinkInk& ink_;
  const std::vector<SpotPlace> places_;
  std::vector<std::vector<Join>> up_, down_;       // by spot
  std::vector<std::int32_t> arcs_;                 // cables from device to device
  std::int32_t inside_ = 0, top_ = 0, below_ = 0;  // tracks: in the box, all above, below devices
  std::int32_t columns_ = 1, rows_ = 1;
  bool folded_ = false;
  double pitch_ = 56;
};

}  // namespace reshard::sim
