// SPDX-License-Identifier: BSD-3-Clause
// One node of a machine: its GPUs in a row, and above them a bar for every link, over the GPUs with
// routes that cross it. Many GPUs are folded into several rows, each with its part of every bar.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/picture/topology/link_ink.h"
#include "sim/picture/topology/node_links.h"

namespace reshard::sim {

class NodePicture {
 public:
  NodePicture(const Topology& topology, const NodeLinks& links, const LinkInk& ink);

  double width() const;
  double height() const;
  // Width of the labels to the left of the first node; height of the fabric's bars above all.
  double label_width() const;
  double outside_height() const;
  // A node's box with its upper left corner at (x, y).
  void draw(Node parent, std::int32_t node, double x, double y) const;
  // What the rows are, right-aligned at x next to a box with its upper edge at y.
  void draw_labels(Node parent, double x, double y) const;
  // The fabric's bars, above boxes with their upper edge at y.
  void draw_outside(Node parent, double x, double width, double y) const;

 private:
  double row_height(const LinkRow& row) const {
    return row.of == LinkRow::Of::Shared ? kSharedRow : kPortRow;
  }
  // Upper edge of a row of bars, and of the GPUs, in a fold, relative to the box.
  double row_y(std::size_t row, int fold) const;
  double device_y(int fold) const { return kPadding + fold * fold_height() + bars_height(); }
  double bars_height() const;
  double fold_height() const { return bars_height() + kDevice + kGap; }
  double column_x(std::int32_t device) const { return kPadding + device % columns_ * pitch_; }
  void draw_guides(Node parent) const;
  const std::vector<std::int32_t>& devices_of(const LinkRow& row, std::size_t bar) const;
  void draw_bar(Node parent, std::int32_t node, std::size_t row, std::size_t bar) const;
  void draw_device(Node parent, std::int32_t node, std::int32_t device) const;

  static constexpr double kPadding = 14, kPortRow = 16, kSharedRow = 27, kOutsideRow = 34,
                          kDevice = 36, kGap = 14, kFoot = 20;

  const Topology& topology_;
  const NodeLinks& links_;
  const LinkInk& ink_;
  const std::vector<LinkRow> rows_;  // the lowest first
  std::int32_t columns_ = 1, folds_ = 1;
  double pitch_ = 56;
};

}  // namespace reshard::sim
