// SPDX-License-Identifier: BSD-3-Clause
// The buffers of a model's ranks in this process, with a value in every element. The shards of a
// plan are gathered from them and, once scattered to them, compared there.
//
// Values follow from the tensor and the index alone, by way of the buffers' parts and not of the
// requests, so that a shard of the wrong parts is found. Padding holds bytes that must not change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "core/bytes/block.h"
#include "core/pattern/pattern.h"
#include "core/stored/rank_shards.h"

namespace reshard::sim {

class StoredImages {
 public:
  // The requests must outlive it.
  explicit StoredImages(const StoredRequests& requests);

  // The bytes of all ranks' buffers. Shards that are not in buffers need the bytes of the plan's
  // shards in addition.
  static std::int64_t bytes_of(const StoredRequests& requests);

  // Writes the rank's shard of a source with the values that its buffers have.
  void gather(TensorId request, Rank rank, std::span<std::byte> shard);
  // Copies a finished shard into the rank's buffers, and compares every element there that the
  // request writes; none if all agree. The bits in the mismatch are those of the tensor's dtype.
  std::optional<PatternMismatch> scatter(TensorId request, Rank rank,
                                         std::span<const std::byte> shard);
  // Throws CheckFailure if a byte of padding changed in the destination's buffers.
  void check_padding() const;

 private:
  // The buffers of a rank, made when they are first needed.
  struct RankImages {
    std::map<std::pair<bool, StoredBufferId>, std::unique_ptr<Block>> buffers;
    std::unique_ptr<RankShards> shards;
  };
  RankImages& images_of(Rank rank);
  std::unique_ptr<Block> image_of(const Stored& side, StoredBufferId id) const;
  // Elements first .. first + count - 1 of the tensor in this dtype, dense.
  void fill_row(ModelTensorId tensor, DType dtype, std::int64_t first, std::int64_t count,
                std::byte* out) const;
  void compare(const StoredBuffer& buffer, const StoredPart& part, const std::byte* memory,
               PatternMismatch& found) const;

  const StoredRequests& requests_;
  std::map<ModelTensorId, Pattern> patterns_;
  std::set<ModelTensorId> converted_;  // tensors that some buffer converts
  std::map<Rank, RankImages> ranks_;
};

}  // namespace reshard::sim
