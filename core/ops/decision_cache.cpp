// SPDX-License-Identifier: BSD-3-Clause
// Keys of tensors and calls, and a least-recently-used cache by such keys.
#include "core/ops/decision_cache.h"

#include <bit>

namespace reshard {

namespace {

std::uint64_t word(std::int64_t value) { return static_cast<std::uint64_t>(value); }

void add_placement(const OpPlacement& placement, SpecKey& key) {
  key.push_back(static_cast<std::uint64_t>(placement.kind) |
                static_cast<std::uint64_t>(placement.dim) << 8 |
                static_cast<std::uint64_t>(placement.op) << 16 |
                static_cast<std::uint64_t>(placement.norm_is_number) << 24 |
                static_cast<std::uint64_t>(placement.mask_dims) << 32);
  switch (placement.kind) {
    case OpPlacement::Kind::StridedShard:
      key.push_back(word(placement.split_factor));
      break;
    case OpPlacement::Kind::NormPartial:
      key.push_back(std::bit_cast<std::uint64_t>(placement.norm));
      break;
    case OpPlacement::Kind::MaskPartial:
      for (std::int64_t size : placement.mask_shape) key.push_back(word(size));
      break;
    default:
      break;
  }
}

}  // namespace

void add_tensor(const TensorSpec* tensor, SpecKey& key) {
  if (!tensor) {
    key.push_back(~std::uint64_t{0});
    return;
  }
  key.push_back(static_cast<std::uint64_t>(tensor->meta.dtype) |
                static_cast<std::uint64_t>(tensor->meta.shape.size()) << 8 |
                static_cast<std::uint64_t>(tensor->of_view) << 16 |
                static_cast<std::uint64_t>(tensor->at_least_zero) << 17);
  for (std::int64_t size : tensor->meta.shape) key.push_back(word(size));
  add_placements(tensor->placements, key);
}

void add_placements(const OpPlacements& placements, SpecKey& key) {
  for (const OpPlacement& placement : placements) add_placement(placement, key);
}

std::size_t SpecKeyHash::operator()(const SpecKey& key) const {
  std::uint64_t hash = key.size();
  for (std::uint64_t value : key) {
    hash = (std::rotl(hash, 5) ^ value) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 32;
  }
  return hash;
}

namespace {

void add_value(const OpValue& value, bool kind_only, SpecKey& key) {
  key.push_back(static_cast<std::uint64_t>(value.kind) | value.list.size() << 8 |
                value.text.size() << 32);
  if (kind_only) return;
  key.push_back(static_cast<std::uint64_t>(value.integer));
  key.push_back(std::bit_cast<std::uint64_t>(value.number));
  for (char letter : value.text) key.push_back(static_cast<unsigned char>(letter));
  for (const OpValue& item : value.list) add_value(item, false, key);
}

}  // namespace

DecisionCache::DecisionCache(std::int64_t capacity) : capacity_(capacity) {}

void DecisionCache::write_key(const OpCall& call, std::uint64_t mesh) {
  key_.clear();
  key_.push_back(std::bit_cast<std::uint64_t>(call.op));
  key_.push_back(mesh << 1 | (call.loss_parallel ? 1 : 0));
  for (const OpArgument& argument : call.arguments) {
    key_.push_back(argument.tensors.size() << 1 | (argument.is_list ? 1 : 0));
    for (const TensorSpec* tensor : argument.tensors) add_tensor(tensor, key_);
  }
  for (const OpRead& read : call.op->reads) {
    const OpValue* value = call.attributes.find(read.name);
    key_.push_back(value ? 1 : 0);
    if (value) add_value(*value, read.kind_only, key_);
  }
}

const Decision* DecisionCache::find() {
  auto at = by_key_.find(key_);
  hit_ = at != by_key_.end();
  if (!hit_) {
    ++statistics_.misses;
    return nullptr;
  }
  ++statistics_.hits;
  entries_.splice(entries_.begin(), entries_, at->second);
  return &at->second->decision;
}

const Decision& DecisionCache::keep(Decision decision) {
  if (capacity_ == 0) return last_ = std::move(decision);
  if (static_cast<std::int64_t>(entries_.size()) == capacity_) {
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
    ++statistics_.evictions;
  }
  entries_.push_front({key_, std::move(decision)});
  by_key_.emplace(key_, entries_.begin());
  return entries_.front().decision;
}

DecisionCacheStatistics DecisionCache::statistics() const {
  DecisionCacheStatistics out = statistics_;
  out.entries = static_cast<std::int64_t>(entries_.size());
  out.capacity = capacity_;
  return out;
}

}  // namespace reshard
