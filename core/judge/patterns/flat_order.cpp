// SPDX-License-Identifier: BSD-3-Clause
#include "core/judge/patterns/flat_order.h"

#include <algorithm>

namespace reshard {
namespace {

constexpr std::int64_t kMostAlign = 4096;

std::int64_t linear(const Shape& shape, const DimVector& index) {
  DimVector strides = row_major(shape);
  std::int64_t out = 0;
  for (int d = 0; d < index.size(); ++d) out += index[d] * strides[d];
  return out;
}

std::int64_t up_to(std::int64_t value, std::int64_t align) {
  return (value + align - 1) / align * align;
}

}  // namespace

FlatOrder::FlatOrder(const Stored& side, std::string_view name, const std::vector<Rank>& ranks)
    : side_(side), name_(name) {
  if (!find_begins(ranks) || begins_.size() < 2) return;
  for (std::int64_t align = 1; align <= kMostAlign; align *= 2) reverse(align);
}

// Finds where each tensor begins. False unless every part lies where its tensor's first element
// implies, over the ranks in order.
bool FlatOrder::find_begins(const std::vector<Rank>& ranks) {
  for (Rank rank : ranks) {
    auto id = side_.find(rank, name_);
    if (!id) continue;
    const StoredBuffer& buffer = side_.buffers()[*id];
    if (buffer.shape.size() != 1 || (each_ != 0 && buffer.shape[0] != each_)) return false;
    each_ = buffer.shape[0];
    std::int64_t nth = nth_.emplace(rank, std::ssize(nth_)).first->second;
    for (const StoredPart& part : buffer.parts) {
      const ModelTensor& tensor = side_.tensors()[part.tensor];
      std::int64_t begin = nth * each_ + part.offset - linear(tensor.shape, part.box.lo);
      if (begins_.emplace(tensor.same_as, begin).first->second != begin) return false;
    }
  }
  return true;
}

void FlatOrder::reverse(std::int64_t align) {
  std::vector<std::pair<std::int64_t, ModelTensorId>> order;
  for (auto [tensor, begin] : begins_) order.emplace_back(begin, tensor);
  std::sort(order.begin(), order.end());
  std::int64_t end = 0;
  for (auto [begin, tensor] : order) {
    if (begin != up_to(end, align)) return;  // not the alignment
    end = begin + element_count(side_.tensors()[tensor].shape);
  }
  Begins out;
  end = 0;
  for (auto each = order.rbegin(); each != order.rend(); ++each) {
    std::int64_t begin = up_to(end, align);
    out[each->second] = begin;
    end = begin + element_count(side_.tensors()[each->second].shape);
  }
  orders_.push_back(std::move(out));
}

std::vector<bool> FlatOrder::reversed(ModelTensorId tensor, const DimVector& index, Rank rank,
                                      std::int64_t offset) const {
  std::vector<bool> out;
  auto nth = nth_.find(rank);
  for (const Begins& begins : orders_) {
    auto begin = begins.find(side_.tensors()[tensor].same_as);
    out.push_back(nth != nth_.end() && begin != begins.end() &&
                  begin->second + linear(side_.tensors()[tensor].shape, index) ==
                      nth->second * each_ + offset);
  }
  return out;
}

}  // namespace reshard
