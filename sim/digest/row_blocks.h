// SPDX-License-Identifier: BSD-3-Clause
// A rank's part of a tensor is divided for its digests into blocks of whole rows (indices of dim
// 0). Blocks begin at multiples of a number of rows, counted in the tensor, wherever the rank's box
// begins. A scalar is one row.
//
// A block also has a *head*, which serves to find data that was shifted: the digest of its first
// row, of at most 4 KiB; if a row is shorter than 64 bytes, of as many rows as have 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/stored/stored.h"
#include "sim/digest/view_digest.h"

namespace reshard::sim {

struct BlockDigests {
  std::vector<std::uint64_t> blocks, heads;  // by block
  friend auto operator<=>(const BlockDigests&, const BlockDigests&) = default;
};
using BlockDigestsRef = std::shared_ptr<const BlockDigests>;

inline constexpr std::int64_t kHeadBytes = 4096, kShortHeadBytes = 64;

// The smallest power of two of rows with at least 1 MiB: a model of 100 GB has 100,000 blocks.
std::int64_t default_rows(const ModelTensor& tensor);

// The number of blocks of a box, which must not be empty.
std::int64_t block_count(const Box& box, std::int64_t rows);
Box block_at(const Box& box, std::int64_t rows, std::int64_t index);
// The rows that the head of a block covers.
Box head_of(const Box& block, std::int64_t element_bytes);

// The view of `cut`, a box within `of`, given the view of `of`.
StridedView view_within(const StridedView& view, const Box& of, const Box& cut);

// The digests of all blocks of `box`, which is in memory as `view`.
BlockDigests digests_of(std::span<const std::byte> memory, const StridedView& view, const Box& box,
                        std::int64_t rows, std::int64_t element_bytes, ViewDigester& digester);
// The digest of a head that is in memory as this view.
std::uint64_t head_digest(std::span<const std::byte> memory, const StridedView& head,
                          std::int64_t element_bytes, ViewDigester& digester);

}  // namespace reshard::sim
