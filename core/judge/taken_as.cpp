// SPDX-License-Identifier: BSD-3-Clause
#include "core/judge/taken_as.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/core.h>

namespace reshard {

TakenAs::TakenAs(const Stored& side, StoredBufferId buffer, const std::vector<Rank>& ranks)
    : side_(side), buffer_(buffer) {
  const std::vector<StoredPart>& parts = side.buffers()[buffer].parts;
  for (const StoredPart& part : parts) {
    ModelTensorId root = side.tensors()[part.tensor].same_as;
    if (std::find(order_.begin(), order_.end(), root) == order_.end()) order_.push_back(root);
    parts_[root].push_back(&part);
    // In a transposed part the elements of a row are not adjacent.
    const int last = part.strides.size() - 1;
    is_transposed_ =
        is_transposed_ || (last > 0 && part.box.extent(last) > 1 && part.strides[last] > 1);
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
  if (parts.size() == 1) find_cut(parts.front());
  if (!parts.empty()) piece_ = std::distance(firsts.begin(), firsts.find(parts.front().box));
}

void TakenAs::find_cut(const StoredPart& part) {
  const Shape& shape = side_.tensors()[part.tensor].shape;
  DimVector strides = row_major(part.box.extents());
  int cut = -1, cuts = 0;
  for (int d = 0; d < shape.size(); ++d) {
    if (part.box.extent(d) > 1 && part.strides[d] != strides[d]) return;
    if (part.box.extent(d) == shape[d]) continue;
    cut = d;
    ++cuts;
  }
  if (cuts != 1 || shape[cut] % part.box.extent(cut) != 0 ||
      part.box.lo[cut] % part.box.extent(cut) != 0)
    return;
  cut_dim_ = cut;
  cuts_ = shape[cut] / part.box.extent(cut);
  cut_ = part.box.lo[cut] / part.box.extent(cut);
}

int TakenAs::cut_along(ModelTensorId tensor, const DimVector& index, std::int64_t offset) const {
  if (cut_dim_ < 0 || order_.front() != tensor) return -1;
  const Shape& shape = side_.tensors()[tensor].shape;
  for (int d = 0; d < shape.size(); ++d) {
    if (d == cut_dim_ || shape[d] % cuts_ != 0) continue;
    DimVector extents = shape, at = index;
    extents[d] /= cuts_;
    at[d] -= cut_ * extents[d];
    if (at[d] < 0 || at[d] >= extents[d]) continue;
    DimVector strides = row_major(extents);
    std::int64_t there = parts_.at(tensor).front()->offset;
    for (int i = 0; i < at.size(); ++i) there += at[i] * strides[i];
    if (there == offset) return d;
  }
  return -1;
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

std::optional<std::int64_t> TakenAs::stacked(ModelTensorId tensor, const DimVector& index) const {
  if (!begin_.contains(tensor) || index.size() < 3) return std::nullopt;
  // The indices of each tensor in the order of memory, as found so far.
  std::map<ModelTensorId, std::int64_t> entries;
  std::optional<std::int64_t> entry, within;
  for (const StoredPart& part : side_.buffers()[buffer_].parts) {
    ModelTensorId root = side_.tensors()[part.tensor].same_as;
    if (part.box.dims() != index.size()) return std::nullopt;
    Box one{index, index};
    for (int d = 0; d < index.size(); ++d) ++one.hi[d];
    if (root == tensor && !entry && contains(part.box, one)) {
      entry = entries[root] + index[0] - part.box.lo[0];
      DimVector strides = row_major(part.box.extents());
      within = 0;
      for (int d = 1; d < index.size(); ++d) *within += (index[d] - part.box.lo[d]) * strides[d];
    }
    entries[root] += part.box.extent(0);
  }
  const std::int64_t count = entries.at(tensor);
  for (ModelTensorId other : order_)
    if (entries[other] != count) return std::nullopt;
  if (!entry) return std::nullopt;
  return *entry * (size_ / count) + begin_.at(tensor) / count + *within;
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
