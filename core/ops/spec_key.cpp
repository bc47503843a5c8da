// SPDX-License-Identifier: BSD-3-Clause
#include "core/ops/spec_key.h"

#include <bit>

namespace reshard {
namespace {

std::uint64_t word(std::int64_t value) { return static_cast<std::uint64_t>(value); }

void add_placement(const OpPlacement& placement, SpecKey& key) {
  key.push_back(static_cast<std::uint64_t>(placement.kind) |
                static_cast<std::uint64_t>(placement.dim) << 8 |
                static_cast<std::uint64_t>(placement.op) << 16 |
                static_cast<std::uint64_t>(placement.norm_is_number) << 24);
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
                static_cast<std::uint64_t>(tensor->of_view) << 16);
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

}  // namespace reshard
