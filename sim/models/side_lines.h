// SPDX-License-Identifier: BSD-3-Clause
// Writes the layout of a model on one side of a transfer as lines of a file of layouts
// (docs/check.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/base/ids.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

// A mesh of ranks, as "dp=2,tp=4" and the list of ranks in row-major order.
struct MeshLines {
  std::string mesh = {}, ranks = {};
};
struct MeshAxis {
  std::string_view name;
  std::int64_t size;
};
MeshLines mesh_lines(const std::vector<MeshAxis>& axes, const std::vector<Rank>& ranks);

// The fields of a line in addition to its blocks and placements.
struct BufferExtras {
  int dim = 0;             // along which the blocks are joined
  std::string map = {};    // JSON: which indices each rank has
  std::string order = {};  // JSON: the dims in memory order
  std::string each = {};   // "local", "global": a buffer for each index of the first dim
  std::string dtype = {};  // of the buffer, if its rank converts
};

class SideLines {
 public:
  // `side` is "from" or "to". If `has_scales`, the buffers of weights that have scales get a line
  // of scales.
  SideLines(std::string_view side, bool has_scales) : side_(side), has_scales_(has_scales) {}

  bool has_scales() const { return has_scales_; }

  // Blocks of tensors as the file has them: "q:4 k:1 v:1 x128", "lm_head pad64"; `weight` is one of
  // them.
  void buffer(std::string_view name, const MeshLines& mesh, const std::vector<std::string>& blocks,
              const Weight& weight, std::string_view placements = {},
              const BufferExtras& extras = {});
  // A buffer that only serves flat_of: no rank has it as such. Its blocks are whole on every rank
  // of the mesh unless placements cut them.
  void named(std::string_view name, const MeshLines& mesh, const std::vector<std::string>& blocks,
             const BufferExtras& extras, std::string_view placements = {});
  // The named buffers flattened, and divided evenly among the ranks along the axes. The ranks
  // convert between `dtype` and the dtype of the weights, unless it is empty.
  void flat_of(std::string_view name, const std::vector<std::string>& buffers,
               const std::vector<std::string>& axes, std::int64_t align, std::int64_t pad,
               std::string_view dtype = {});

  // Whether some line has a part of the tensor.
  bool holds(const std::string& tensor) const { return held_.contains(tensor); }

  // All lines, those of scales last.
  std::string text() const { return lines_ + scales_; }

 private:
  void note_tensors(std::string_view block);
  void line(std::string_view side, std::string_view name, const MeshLines& mesh,
            const std::vector<std::string>& blocks, std::string_view placements,
            const BufferExtras& extras);

  std::string side_, lines_, scales_;
  bool has_scales_;
  std::vector<std::string> scaled_;       // names that have a line of scales, ascending
  std::unordered_set<std::string> held_;  // the words of all blocks
};

// The lines of the model's tensors, including those of scales if `has_scales`.
std::string tensor_lines(const Model& model, bool has_scales);
// The name of the scales of a weight.
std::string scale_name(std::string_view weight);

}  // namespace reshard::sim
