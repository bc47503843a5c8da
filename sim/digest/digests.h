// SPDX-License-Identifier: BSD-3-Clause
// Digests of the buffers of a model's ranks, part by part: of what they should hold, from the
// weights, and of what they do hold, from a rank's memory.
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

// By buffer and part; null where nothing is known.
using SideDigests = IndexVector<StoredBufferId, std::vector<BlockDigestsRef>>;
SideDigests no_digests(const Stored& side);

enum class DigestSide : std::uint8_t { From, To };
inline constexpr DigestSide kDigestSides[] = {DigestSide::From, DigestSide::To};
std::string_view text(DigestSide side);
inline const Stored& side_of(const ModelLayouts& layouts, DigestSide side) {
  return side == DigestSide::From ? *layouts.source : *layouts.destination;
}
// "from", "to" or "both". Throws InputError naming `field`.
std::vector<DigestSide> parse_sides(std::string_view text, std::string_view field);

struct Digests {
  std::string file;                               // for messages
  IndexVector<ModelTensorId, std::int64_t> rows;  // of a block, by tensor
  std::optional<SideDigests> sides[2];            // by DigestSide
  std::optional<SideDigests>& of(DigestSide side) { return sides[to_index(side)]; }
  const std::optional<SideDigests>& of(DigestSide side) const { return sides[to_index(side)]; }
};

// Rows of a block by tensor: `rows` of each, or the default of each where it is 0.
IndexVector<ModelTensorId, std::int64_t> rows_of(const ModelTensors& tensors, std::int64_t rows);
// Throws InputError, naming `field`, where all parts of a side would have too many blocks.
void require_few_blocks(const Stored& side, const Digests& digests, std::string_view field);

// A layout's tensor in a checkpoint, by its own name, else by another that it has (tied weights).
// Throws InputError if it is not there or has another shape or dtype.
const Weights::Tensor& weight_of(const Weights& weights, const ModelTensors& tensors,
                                 ModelTensorId id);

// A tensor that a checkpoint has within another, as q_proj in qkv_proj: where its elements are.
struct JoinedTensor {
  std::string in;
  StridedView view;
};
using JoinedTensors = std::map<std::string, JoinedTensor, std::less<>>;  // by name

// What ranks have if all is right. Every box of a tensor is read once, whoever has it, in the order
// of the files. Tensors that the checkpoint lacks are read where they are joined with others.
Digests digests_of_weights(const ModelLayouts& layouts, const Weights& weights,
                           std::span<const DigestSide> sides, std::int64_t rows,
                           const JoinedTensors& joined = {});

struct HeldBuffer {
  std::string name;
  std::span<const std::byte> bytes;
};
// What a rank has in the buffers given. Throws InputError for a buffer that the rank does not have,
// that is given twice or has another size.
Digests digests_of_buffers(const ModelLayouts& layouts, DigestSide side, Rank rank,
                           std::span<const HeldBuffer> buffers, std::int64_t rows);

}  // namespace reshard::sim
