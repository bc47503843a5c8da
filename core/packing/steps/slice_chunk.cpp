// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/steps/slice_chunk.h"

namespace reshard {

void SliceChunk::take(const Commodities& commodities, const std::vector<StringPart>& slice,
                      Share share, std::int64_t of, std::int32_t chunks) {
  parts.clear();
  all_pieces.clear();
  for (const StringPart& part : chunk_of(commodities, slice, share, of, chunks)) {
    const TensorKind& kind = commodities.kind(part.of);
    const Item& item = commodities.item(part.of);
    const std::size_t first_piece = all_pieces.size();
    for_each_fragment(kind, item, part.box,
                      [&](const DimVector& source_lo, const DimVector& destination_lo,
                          const DimVector& packed_lo, const DimVector& extents) {
                        all_pieces.push_back({source_lo, destination_lo, packed_lo, extents});
                      });
    const bool is_series = kind.request().tensors() > 1;
    parts.push_back({part.of.tensor, is_series ? part.box.lo[part.box.dims() - kind.dims()] : 0,
                     &item, part.box.extents(), part.across, first_piece,
                     all_pieces.size() - first_piece});
  }
}

}  // namespace reshard
