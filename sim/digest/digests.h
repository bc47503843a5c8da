// SPDX-License-Identifier: BSD-3-Clause
// Digests of the buffers of a model's ranks, part by part: of what they should hold, computed from
// weights, and of what they do hold, computed from a rank's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/stored/view.h"
#include "sim/check/check_file.h"
#include "sim/digest/row_blocks.h"
#include "sim/weights/weights.h"

namespace reshard::sim {

// By buffer and part; null if unknown.
using SideDigests = IndexVector<StoredBufferId, std::vector<BlockDigestsRef>>;
SideDigests no_digests(const Stored& side);

enum class DigestSide : std::uint8_t { From, To };
inline constexpr DigestSide kDigestSides[] = {DigestSide::From, DigestSide::To};
std::string_view text(DigestSide side);
inline const Stored& side_of(const ModelLayouts& layouts, DigestSide side) {
  return side == DigestSide::From ? *layouts.source : *layouts.destination;
}
// Reads "from", "to" or "both". Throws InputError naming `field`.
std::vector<DigestSide> parse_sides(std::string_view text, std::string_view field);

struct Digests {
  std::string file;                               // the name for messages
  IndexVector<ModelTensorId, std::int64_t> rows;  // by tensor: the rows per block
  std::optional<SideDigests> sides[2];            // by DigestSide
  std::optional<SideDigests>& of(DigestSide side) { return sides[to_index(side)]; }
  const std::optional<SideDigests>& of(DigestSide side) const { return sides[to_index(side)]; }
};

// The rows per block of each tensor: `rows`, or the tensor's default if `rows` is 0.
IndexVector<ModelTensorId, std::int64_t> rows_of(const ModelTensors& tensors, std::int64_t rows);
// Throws InputError, naming `field`, if the parts of a side have too many blocks together.
void require_few_blocks(const Stored& side, const Digests& digests, std::string_view field);

// The tensor of a checkpoint that has the name of a layout's tensor, or else another of its names
// (tied weights). Throws InputError if there is none, or if it has another shape or dtype.
const Weights::Tensor& weight_of(const Weights& weights, const ModelTensors& tensors,
                                 ModelTensorId id);

// A tensor that a checkpoint has within another, as q_proj in qkv_proj: where its elements are.
struct JoinedTensor {
  std::string in;
  StridedView view;
};
using JoinedTensors = std::map<std::string, JoinedTensor, std::less<>>;  // by name

// What ranks should have. Every box of a tensor is read once, however many ranks have it, in the
// order of the files. Tensors that the checkpoint lacks are read where they are joined with others.
Digests digests_of_weights(const ModelLayouts& layouts, const Weights& weights,
                           std::span<const DigestSide> sides, std::int64_t rows,
                           const JoinedTensors& joined = {});

struct HeldBuffer {
  std::string name;
  std::span<const std::byte> bytes;
};
// What a rank has in the given buffers. Throws InputError if the rank does not have a buffer, or if
// a buffer is given twice or has another size.
Digests digests_of_buffers(const ModelLayouts& layouts, DigestSide side, Rank rank,
                           std::span<const HeldBuffer> buffers, std::int64_t rows);

}  // namespace reshard::sim
