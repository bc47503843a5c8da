// SPDX-License-Identifier: BSD-3-Clause
// Layouts that are not products of pieces: every rank's shard is a list of boxes of the tensor.
//
// Ranks can hold boxes that overlap those of others in any way. The boxes of one rank are disjoint,
// in the tensor and in its shard. Elements of a shard that are in none of them are its padding,
// which can be anything in a source and is zero in a destination.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/layout/box.h"
#include "core/layout/mesh.h"

namespace reshard {

// A box of the tensor, in global indices, and the lowest index at which a shard has it.
struct Part {
  Box box;
  DimVector local_lo;
  Box local() const { return box_at(local_lo, box.extents()); }
  friend bool operator==(const Part&, const Part&) = default;
  friend auto operator<=>(const Part&, const Part&) = default;
};

// The contents of a shard. Positions with equal cells are replicas of each other.
struct BoxCell {
  Shape local_shape;         // zeros if there are no parts
  std::vector<Part> parts;   // ascending in the shard
  std::vector<Box> padding;  // disjoint, in local indices
};

class ExplicitBoxes {
 public:
  // `lists`: of parts, in any order; `list_of`: by mesh position the number of its list, -1 if it
  // holds nothing. Throws InputError, naming the rank, for a tensor of 0 dims, an empty box or one
  // outside the tensor, boxes of a rank that overlap in the tensor or in its shard, and a shard of
  // more than 2^62 elements.
  ExplicitBoxes(const Shape& shape, const Mesh& mesh, std::vector<std::vector<Part>> lists,
                const std::vector<std::int32_t>& list_of);

  // Numbered in the order of their first positions.
  const std::vector<BoxCell>& cells() const { return cells_; }
  std::int32_t cell_of(std::int32_t position) const { return cell_of_[position]; }

  // "boxes(0-1: [0:4,0:8]; 2: [4:6,0:8], [6:8,0:8]@2,0)": per cell the ranks that have it, and its
  // boxes with their place in the shard. Without "@" a box comes after those before it along dim 0.
  std::string text(const Mesh& mesh) const;
  friend bool operator==(const ExplicitBoxes& a, const ExplicitBoxes& b);

 private:
  void add_cell(const Shape& shape, const std::vector<Part>& parts, Rank rank);

  std::vector<BoxCell> cells_;
  IndexVector<std::int32_t, std::int32_t> cell_of_;
};

// Whether the text is one of explicit boxes.
bool is_boxes_text(std::string_view text);
// Reads what ExplicitBoxes::text writes, also with ":" for a whole dim; ranks that
// are not named hold nothing. Throws InputError naming `field`.
ExplicitBoxes parse_boxes(std::string_view text, const Shape& shape, const Mesh& mesh,
                          std::string_view field);

}  // namespace reshard
