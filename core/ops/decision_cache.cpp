// SPDX-License-Identifier: BSD-3-Clause
#include "core/ops/decision_cache.h"

#include <bit>

namespace reshard {
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
