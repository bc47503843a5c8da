// SPDX-License-Identifier: BSD-3-Clause
// How a model lies on ranks, read from a file of another tool: the tensors, and lines of buffers as
// files of layouts have them (docs/check.md).
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
  // The tensor of which this is another name, if it is; one of the same side, which is no alias.
  std::string alias_of = {};
};

struct ForeignLayouts {
  std::vector<ForeignTensor> tensors;
  std::string buffers;             // lines of one side, or of both
  std::int64_t end_rank = 0;       // greater than every rank in them
  std::vector<std::string> notes;  // what was left out or assumed, a sentence each
};

// Throws InputError "PLACE: tensor NAME: ..." for a name that is no UTF-8, and more than 2^62
// bytes.
void check_tensor(const ForeignTensor& tensor, const std::string& place);

// The tensors of both sides, each once, other names of a tensor last. A name is another one's only
// if each side that has it says so. Throws InputError for a tensor that the sides have with two
// shapes or dtypes.
std::vector<ForeignTensor> joined(const std::vector<ForeignTensor>& from,
                                  const std::vector<ForeignTensor>& to);
// Their lines.
std::string tensor_lines(const std::vector<ForeignTensor>& tensors);
// A whole file of layouts: header, tensors, buffers. The second joins two sides.
std::string layouts_text(const ForeignLayouts& both);
std::string layouts_text(const ForeignLayouts& from, const ForeignLayouts& to);

// Buffers that are boxes of tensors, dense and row-major. A buffer has its tensor's name; the
// second one that a rank has of a tensor is NAME#2.
class BoxBuffers {
 public:
  // "from" or "to".
  explicit BoxBuffers(std::string_view side) : side_(side) {}
  // The box is not empty. The tensors must outlive this.
  void add(Rank rank, const ForeignTensor& tensor, const Box& box);
  // In the order of adding; ranks that have the same are one line.
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
