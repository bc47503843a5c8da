// SPDX-License-Identifier: BSD-3-Clause
#include "core/judge/taken_as.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

namespace reshard {

TakenAs::TakenAs(const Stored& side, StoredBufferId buffer, const std::vector<Rank>& ranks)
    : side_(side) {
  const std::vector<StoredPart>& parts = side.buffers()[buffer].parts;
  for (const StoredPart& part : parts) {
    ModelTensorId root = side.tensors()[part.tensor].same_as;
    if (std::find(order_.begin(), order_.end(), root) == order_.end()) order_.push_back(root);
    parts_[root].push_back(&part);
    for (int d = 1; d < part.strides.size(); ++d)
      is_transposed_ = is_transposed_ || (part.strides[d] > part.strides[d - 1] &&
                                          part.box.extent(d) > 1 && part.box.extent(d - 1) > 1);
  }
  std::int64_t begin = 0;
  for (ModelTensorId tensor : order_) {
    begin_[tensor] = begin;
    std::vector<const StoredPart*>& own = parts_[tensor];
    for (const StoredPart* part : own) volume_[tensor] += part->box.volume();
    begin += volume_[tensor];
    std::sort(own.begin(), own.end(),
              [](const auto* a, const auto* b) { return a->box.lo < b->box.lo; });
  }
  size_ = begin;
  std::set<Box> firsts;
  for (Rank rank : ranks)
    if (auto other = side.find(rank, side.buffers()[buffer].name))
      if (!side.buffers()[*other].parts.empty())
        firsts.insert(side.buffers()[*other].parts.front().box);
  if (!parts.empty()) piece_ = std::distance(firsts.begin(), firsts.find(parts.front().box));
}

std::string TakenAs::text() const {
  std::string out;
  for (ModelTensorId tensor : order_)
    out += fmt::format("{}{}", out.empty() ? "" : " | ", side_.tensors()[tensor].name);
  return fmt::format("[{}]", out);
}

std::string TakenAs::names_text() const {
  std::string out;
  for (ModelTensorId tensor : order_)
    out += fmt::format("{}{}", out.empty() ? "" : " and ", side_.tensors()[tensor].name);
  return out;
}

std::optional<std::int64_t> TakenAs::in_blocks(ModelTensorId tensor, const DimVector& index) const {
  auto begin = begin_.find(tensor);
  if (begin == begin_.end()) return std::nullopt;
  std::int64_t offset = begin->second;
  for (const StoredPart* part : parts_.at(tensor)) {
    Box one{index, index};
    for (int d = 0; d < index.size(); ++d) ++one.hi[d];
    if (!contains(part->box, one)) {
      offset += part->box.volume();
      continue;
    }
    DimVector strides = row_major(part->box.extents());
    for (int d = 0; d < index.size(); ++d) offset += (index[d] - part->box.lo[d]) * strides[d];
    return offset;
  }
  return std::nullopt;
}

std::optional<std::int64_t> TakenAs::alternating(ModelTensorId tensor,
                                                 const DimVector& index) const {
  std::optional<std::int64_t> at = in_blocks(tensor, index);
  if (!at || index.size() == 0) return std::nullopt;
  auto row_of = [&](ModelTensorId id) {
    const Box& box = parts_.at(id).front()->box;
    return box.dims() == 0 || box.empty() ? 0 : box.volume() / box.extent(0);
  };
  const std::int64_t row = row_of(tensor), local = *at - begin_.at(tensor);
  for (ModelTensorId other : order_)
    if (row == 0 || row_of(other) != row || volume_.at(other) != volume_.at(tensor))
      return std::nullopt;
  auto number = std::find(order_.begin(), order_.end(), tensor) - order_.begin();
  return (local / row * std::ssize(order_) + number) * row + local % row;
}

std::optional<std::int64_t> TakenAs::joined(ModelTensorId tensor, const DimVector& index) const {
  std::int64_t at = 0;
  for (ModelTensorId other : order_) {
    const Shape& shape = side_.tensors()[other].shape;
    if (other != tensor) {
      at += element_count(shape);
      continue;
    }
    DimVector strides = row_major(shape);
    for (int d = 0; d < index.size(); ++d) at += index[d] * strides[d];
    at -= piece_ * size_;
    return at < 0 || at >= size_ ? std::nullopt : std::optional(at);
  }
  return std::nullopt;
}

}  // namespace reshard
