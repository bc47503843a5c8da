// SPDX-License-Identifier: BSD-3-Clause
// A rank's shards of stored requests, which executors run on, in the memory of the rank's buffers.
//
// A shard that is one dense row-major stretch of a buffer, of the tensor's dtype, is that stretch.
// Any other has memory of its own: `gather` copies into it what the buffers of the source hold,
// `scatter` copies to the buffers of the destination what it holds after a run. Both convert where
// a buffer does. Elements of buffers without a part are neither read nor written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/bytes/block.h"
#include "core/stored/stored_requests.h"

namespace reshard {

// The dense row-major stretch of a buffer that a shard is.
struct StoredStretch {
  StoredBufferId buffer;
  std::int64_t offset;  // elements
};

// None as well for a shard without elements. `places` are the shard's, of source or destination,
// and `side` is the one that has their buffers.
std::optional<StoredStretch> stretch_of(const StoredRequests& requests, const Stored& side,
                                        TensorId request, Rank rank,
                                        std::span<const StoredPlace> places);

class RankShards {
 public:
  // The memory of a whole buffer; at least the size that its shape and dtype give. Called for the
  // buffers of the rank that requests need, in which sources are not written.
  using MemoryOf = std::function<std::byte*(const Stored& side, StoredBufferId buffer)>;
  // The requests and the memory must outlive this.
  RankShards(const StoredRequests& requests, Rank rank, const MemoryOf& memory);

  void gather(TensorId request) const { copy_in(sources_[request]); }
  void gather() const {
    for (const Shard& shard : sources_) copy_in(shard);
  }
  void scatter(TensorId request) const { copy_out(destinations_[request]); }
  void scatter() const {
    for (const Shard& shard : destinations_) copy_out(shard);
  }
  // By request; empty where the rank has none.
  std::span<const std::byte> source(TensorId request) const { return sources_[request].bytes; }
  std::span<std::byte> destination(TensorId request) const { return destinations_[request].bytes; }
  // Of shards that are not in their buffers.
  std::int64_t staged_bytes() const;

 private:
  // What a place of a shard is in memory.
  struct Copy {
    std::byte* buffer;
    DType buffer_dtype;
    StridedView stored, local;  // elements of the buffer, and of the shard
  };
  struct Shard {
    DType dtype;
    std::span<std::byte> bytes;
    std::unique_ptr<Block> own;  // null: in its buffer, or empty
    std::vector<Copy> copies;
  };
  Shard shard_of(const StoredRequests& requests, bool is_source, TensorId request, Rank rank,
                 const MemoryOf& memory) const;
  static void copy_in(const Shard& shard);
  static void copy_out(const Shard& shard);

  IndexVector<TensorId, Shard> sources_, destinations_;
};

}  // namespace reshard
