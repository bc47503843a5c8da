// SPDX-License-Identifier: BSD-3-Clause
// A side of a transfer as Mooncake's placement manifest: which box of which tensor each participant
// has. Every box is contiguous memory of its own, row-major.
//
// Participants have coordinates of parallelism, dp, pp and tp, and a tensor is split, replicated or
// owned along each. They follow from the boxes: ranks that have parts of the same tensors are
// a stage (pp); ranks of a stage that have the same boxes are copies of each other (dp); ranks with
// different boxes differ in tp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/dtype.h"
#include "core/base/ids.h"
#include "core/layout/box.h"
#include "core/stored/view.h"

namespace reshard::sim {

class MooncakePlacement {
 public:
  struct Fragment {
    Rank rank;
    std::string tensor;
    Box box;
    std::int64_t bytes;
    std::string id;
  };

  // "source" or "target".
  explicit MooncakePlacement(std::string side) : side_(std::move(side)) {}

  // What a rank has in a buffer. Throws InputError with the reason if it is not contiguous and
  // row-major, or is empty.
  void add(Rank rank, std::string_view buffer, const std::string& tensor, const Shape& shape,
           DType dtype, const Box& box, const StridedView& view);
  // Call it after the last `add`. Throws InputError if a tensor is cut in a way that the axes do
  // not show, or if a rank has elements of it twice.
  void finish();

  // The fragment that has this element of a buffer.
  const Fragment& at(Rank rank, std::string_view buffer, std::int64_t element) const;
  // The fragment as an operation names it.
  std::string text_of(const Fragment& fragment) const;
  // The manifest.
  std::string text() const;

 private:
  struct Tensor {
    Shape shape;
    DType dtype;
    std::vector<std::size_t> fragments;
    bool is_cut = false;    // a fragment has less than all of it
    bool is_owned = false;  // some of the ranks of a stage have none of it
    int split_dim = -1;     // along which tp cuts it
  };
  struct Coordinates {
    std::int64_t dp = 0, pp = 0, tp = 0;
  };
  using Boxes = std::vector<Box>;

  void find_coordinates();
  void find_axes(const std::string& name, Tensor& tensor) const;
  bool is_split(const Tensor& tensor, int dim) const;
  std::string name_of(Rank rank) const;
  nlohmann::json json_of(const Fragment& fragment) const;
  nlohmann::json rank_json(Rank rank) const;
  nlohmann::json topology_json() const;
  nlohmann::json tensor_json(const std::string& name, const Tensor& tensor) const;
  nlohmann::json parts_json() const;

  std::string side_;
  std::vector<Fragment> fragments_;
  std::map<std::string, Tensor> tensors_;
  std::map<Rank, Coordinates> ranks_;
  Coordinates sizes_;
  // By rank and buffer: each fragment by its first element there.
  std::map<std::pair<Rank, std::string>, std::map<std::int64_t, std::size_t>> places_;
};

}  // namespace reshard::sim
