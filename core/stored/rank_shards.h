// SPDX-License-Identifier: BSD-3-Clause
// The shards on which an executor runs the plan of stored requests, in the memory of a rank's
// buffers.
//
// A shard that is one dense row-major stretch of a buffer, and has the buffer's dtype, is used in
// place. Any other shard has memory of its own: `gather` fills it from the buffers of the source
// before a run, and `scatter` copies it to the buffers of the destination after the run. Both
// convert between dtypes if the buffer has another one. Elements of a buffer without a part are
// neither read nor written.
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

// A dense row-major stretch of a buffer that holds a whole shard.
struct StoredStretch {
  StoredBufferId buffer;
  std::int64_t offset;  // elements
};

// Nothing if the shard is not such a stretch, or has no elements. `places` are those of the shard,
// in the source or the destination, and `side` has their buffers.
std::optional<StoredStretch> stretch_of(const StoredRequests& requests, const Stored& side,
                                        TensorId request, Rank rank,
                                        std::span<const StoredPlace> places);

class RankShards {
 public:
  // Returns the memory of a whole buffer, which is at least as large as its shape and dtype
  // require. Called for the buffers of the rank that the requests use; source buffers are not
  // written.
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
  // By request; empty if the rank has no shard.
  std::span<const std::byte> source(TensorId request) const { return sources_[request].bytes; }
  std::span<std::byte> destination(TensorId request) const { return destinations_[request].bytes; }
  // The memory of shards that are not used in place.
  std::int64_t staged_bytes() const;

 private:
  // Copies one place of a shard from or to its buffer.
  struct Copy {
    std::byte* buffer;
    DType buffer_dtype;
    StridedView stored, local;  // elements of the buffer; elements of the shard
  };
  struct Shard {
    DType dtype;
    std::span<std::byte> bytes;
    std::unique_ptr<Block> own;  // null: used in place, or empty
    std::vector<Copy> copies;
  };
  Shard shard_of(const StoredRequests& requests, bool is_source, TensorId request, Rank rank,
                 const MemoryOf& memory) const;
  static void copy_in(const Shard& shard);
  static void copy_out(const Shard& shard);

  IndexVector<TensorId, Shard> sources_, destinations_;
};

}  // namespace reshard
