// SPDX-License-Identifier: BSD-3-Clause
// The layout of a model as a file of another tool describes it: the tensors, and the buffers as
// lines of a file of layouts (docs/check.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/ids.h"
#include "core/layout/box.h"

namespace reshard::sim {

struct ForeignTensor {
  std::string name;
  Shape shape;
  DType dtype;
  // The tensor of which this is another name; empty: none. It is of the same side, and not an alias
  // itself.
  std::string alias_of = {};
};

struct ForeignLayouts {
  std::vector<ForeignTensor> tensors;
  std::string buffers;             // lines, of one side or of both
  std::int64_t end_rank = 0;       // greater than every rank in them
  std::vector<std::string> notes;  // what was left out or assumed, one sentence each
};

// Throws InputError "PLACE: tensor NAME: ..." if the name is not UTF-8, or the tensor has more than
// 2^62 bytes.
void check_tensor(const ForeignTensor& tensor, const std::string& place);

// The tensors of both sides, each once; aliases come last. A name is an alias only if it is one on
// each side that has it. Throws InputError if the sides disagree on the shape or dtype of a tensor.
std::vector<ForeignTensor> joined(const std::vector<ForeignTensor>& from,
                                  const std::vector<ForeignTensor>& to);
// The lines of the tensors.
std::string tensor_lines(const std::vector<ForeignTensor>& tensors);
// A complete file of layouts: header, tensors, buffers. The second function joins two sides.
std::string layouts_text(const ForeignLayouts& both);
std::string layouts_text(const ForeignLayouts& from, const ForeignLayouts& to);

// Writes buffers that are boxes of tensors, dense and row-major. A buffer has its tensor's name;
// the second buffer of a rank for the same tensor is NAME#2.
class BoxBuffers {
 public:
  // `side` is "from" or "to".
  explicit BoxBuffers(std::string_view side) : side_(side) {}
  // `box` must not be empty. The tensors must outlive this.
  void add(Rank rank, const ForeignTensor& tensor, const Box& box);
  // In the order in which they were added; ranks with the same box share a line.
  std::string lines() const;
  std::int64_t end_rank() const { return end_rank_; }

 private:
  struct Buffer {
    const ForeignTensor* tensor;
    std::string name;
    Box box;
    std::vector<Rank> ranks;
  };
  std::string_view side_;
  std::vector<Buffer> buffers_;
  std::map<std::pair<std::string, Box>, std::size_t> numbers_;
  std::map<std::pair<std::string_view, Rank>, std::int64_t> counts_;  // by tensor and rank
  std::int64_t end_rank_ = 0;
};

}  // namespace reshard::sim
