// SPDX-License-Identifier: BSD-3-Clause
// Finds which rank has which elements of a model, in which buffer and where in it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/stored/stored.h"

namespace reshard::sim {

// A query for elements of a tensor on a rank. Without a tensor, a box or a rank, it is for all.
struct WhereQuery {
  std::optional<ModelTensorId> tensor;
  Box box;  // of the tensor
  std::optional<Rank> rank;
  friend bool operator==(const WhereQuery&, const WhereQuery&) = default;
};
// Reads "q_proj" or "q_proj[4:6,:]"; single indices are possible. A single expert such as
// "experts.17.up_proj.weight[0,:]" is index 17 of "experts.up_proj.weight". Throws InputError
// naming `field`.
WhereQuery parse_where(std::string_view text, const ModelTensors& tensors, std::string_view field);

// Reads the same, or elements of a buffer of either side on one of its ranks,
// "qkv_proj.weight[130,0]", which gives a query for each part that has some of them. The rank can
// be omitted if the buffers of all ranks have the same elements there. A leading "model." can be
// omitted from names.
std::vector<WhereQuery> parse_place(std::string_view text, const Stored& source,
                                    const Stored& destination, std::optional<Rank> rank,
                                    std::string_view field);

struct LayoutRow {
  std::string_view side;  // "from", "to"
  Rank rank;
  std::string_view buffer;
  ModelTensorId tensor;
  Box box;            // of the tensor, in global indices
  StridedView place;  // its elements in the buffer
  Shape buffer_shape;
  DType dtype;    // of the buffer
  bool converts;  // the tensor has another dtype
};
// Appends the parts of a side, by rank and then in the order of buffers.
void add_rows(const Stored& side, std::string_view name, const WhereQuery& query,
              std::vector<LayoutRow>& out);

// Replaces an empty list: "rank 2 has none of it, but rank 0 and 3 more".
std::string nowhere_text(const Stored& source, const Stored& destination,
                         std::vector<WhereQuery> queries);
// Shows at most `rows` rows; `list` must not be empty.
std::string layout_text(const std::vector<LayoutRow>& list, const ModelTensors& tensors,
                        std::size_t rows, std::size_t width);
std::string layout_json(const std::vector<LayoutRow>& list, const ModelTensors& tensors);

}  // namespace reshard::sim
