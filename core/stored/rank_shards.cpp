// SPDX-License-Identifier: BSD-3-Clause
#include "core/stored/rank_shards.h"

#include <algorithm>
#include <cstring>

#include "core/bytes/convert.h"

namespace reshard {
namespace {

const Layout& layout_of(const Request& request, bool is_source) {
  return is_source ? request.source() : request.destination();
}

// Copies runs of `count` elements between two dtypes.
void copy_run(DType from, const std::byte* in, DType to, std::byte* out, std::int64_t count) {
  if (from == to)
    std::memcpy(out, in, to_index(count * size_bytes(to)));
  else
    convert_row(from, in, to, out, count);
}

}  // namespace

std::optional<StoredStretch> stretch_of(const StoredRequests& requests, const Stored& side,
                                        TensorId request, Rank rank,
                                        std::span<const StoredPlace> places) {
  if (places.size() != 1) return std::nullopt;
  const Request& of = requests.requests()[to_index(request)];
  const Layout& layout = layout_of(of, &side == &requests.source());
  const StoredPlace& place = places.front();
  bool is_whole = place.view.extents == layout.local_shape(layout.mesh().position_of(rank).value());
  DimVector dense = row_major(place.view.extents);
  for (int d = 0; d < place.view.dims(); ++d)
    if (place.view.extents[d] > 1 && place.view.strides[d] != dense[d]) return std::nullopt;
  if (!is_whole || side.buffers()[place.buffer].dtype != of.dtype()) return std::nullopt;
  return StoredStretch{place.buffer, place.view.offset};
}

RankShards::RankShards(const StoredRequests& requests, Rank rank, const MemoryOf& memory) {
  for (std::size_t t = 0; t < requests.requests().size(); ++t) {
    auto request = id_of<TensorId>(t);
    sources_.push_back(shard_of(requests, true, request, rank, memory));
    destinations_.push_back(shard_of(requests, false, request, rank, memory));
  }
}

RankShards::Shard RankShards::shard_of(const StoredRequests& requests, bool is_source,
                                       TensorId request, Rank rank, const MemoryOf& memory) const {
  const Request& of = requests.requests()[to_index(request)];
  const Stored& side = is_source ? requests.source() : requests.destination();
  const Layout& layout = layout_of(of, is_source);
  Shard out{of.dtype(), {}, nullptr, {}};
  std::optional<std::int32_t> position = layout.mesh().position_of(rank);
  if (!position) return out;
  std::vector<StoredPlace> places = is_source ? requests.source_places(request, rank)
                                              : requests.destination_places(request, rank);
  if (places.empty()) return out;
  Shape shape = layout.local_shape(*position);
  std::int64_t element_bytes = size_bytes(of.dtype());
  auto bytes = to_index(element_count(shape) * element_bytes);
  if (auto stretch = stretch_of(requests, side, request, rank, places)) {
    out.bytes = {memory(side, stretch->buffer) + stretch->offset * element_bytes, bytes};
    return out;
  }
  out.own = std::make_unique<Block>(static_cast<std::int64_t>(bytes));
  out.bytes = {out.own->data(), bytes};
  if (is_source) std::fill(out.bytes.begin(), out.bytes.end(), std::byte{});  // padding is zero
  for (const StoredPlace& place : places)
    out.copies.push_back({memory(side, place.buffer), side.buffers()[place.buffer].dtype,
                          place.view, view_of(place.local, shape)});
  return out;
}

void RankShards::copy_in(const Shard& shard) {
  for (const Copy& copy : shard.copies) {
    std::int64_t from = size_bytes(copy.buffer_dtype), to = size_bytes(shard.dtype);
    for_each_run(copy.stored, copy.local, [&](std::int64_t a, std::int64_t b, std::int64_t count) {
      copy_run(copy.buffer_dtype, copy.buffer + a * from, shard.dtype, shard.bytes.data() + b * to,
               count);
    });
  }
}

void RankShards::copy_out(const Shard& shard) {
  for (const Copy& copy : shard.copies) {
    std::int64_t from = size_bytes(shard.dtype), to = size_bytes(copy.buffer_dtype);
    for_each_run(copy.local, copy.stored, [&](std::int64_t a, std::int64_t b, std::int64_t count) {
      copy_run(shard.dtype, shard.bytes.data() + a * from, copy.buffer_dtype, copy.buffer + b * to,
               count);
    });
  }
}

std::int64_t RankShards::staged_bytes() const {
  std::int64_t out = 0;
  for (const auto* shards : {&sources_, &destinations_})
    for (const Shard& shard : *shards) out += shard.own ? shard.own->size() : 0;
  return out;
}

}  // namespace reshard
