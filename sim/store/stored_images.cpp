// SPDX-License-Identifier: BSD-3-Clause
#include "sim/store/stored_images.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/bytes/convert.h"

namespace reshard::sim {
namespace {

constexpr std::byte kUntouched{0xa5};

// Calls visit(row-major index in the tensor, count, offset in the buffer, stride there) for the
// rows of a part, in elements.
template <class Visit>
void for_each_row(const ModelTensor& tensor, const StoredPart& part, Visit&& visit) {
  int last = part.box.dims() - 1;
  if (last < 0) return visit(std::int64_t{0}, std::int64_t{1}, part.offset, std::int64_t{1});
  DimVector dense = row_major(tensor.shape), at(last, 0);
  do {
    std::int64_t index = part.box.lo[last], offset = part.offset;
    for (int d = 0; d < last; ++d) {
      index += (part.box.lo[d] + at[d]) * dense[d];
      offset += at[d] * part.strides[d];
    }
    visit(index, part.box.extent(last), offset, part.strides[last]);
  } while (next_index(at, [&](int d) { return part.box.extent(d); }));
}

// Copies elements of `bytes` each, with a stride in elements at either end.
void copy_elements(const std::byte* from, std::int64_t from_stride, std::byte* to,
                   std::int64_t to_stride, std::int64_t count, std::int64_t bytes) {
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, to_index(count * bytes));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_stride * bytes, from + i * from_stride * bytes, to_index(bytes));
}

std::uint64_t bits_of(const std::byte* element, std::int64_t bytes) {
  std::uint64_t out = 0;
  std::memcpy(&out, element, to_index(bytes));
  return out;
}

}  // namespace

StoredImages::StoredImages(const StoredRequests& requests) : requests_(requests) {
  for (std::size_t t = 0; t < requests.requests().size(); ++t) {
    auto request = id_of<TensorId>(t);
    patterns_.try_emplace(requests.tensor_of(request), requests.requests()[t], request);
  }
  for (const Stored* side : {&requests.source(), &requests.destination()})
    for (const StoredBuffer& buffer : side->buffers())
      for (const StoredPart& part : buffer.parts)
        if (buffer.converts) converted_.insert(side->tensors()[part.tensor].same_as);
}

std::int64_t StoredImages::bytes_of(const StoredRequests& requests) {
  Int128 sum = 0;
  for (const Stored* side : {&requests.source(), &requests.destination()})
    for (const StoredBuffer& buffer : side->buffers()) sum += buffer.bytes();
  return static_cast<std::int64_t>(std::min(sum, Int128{kMaxBytes}));
}

void StoredImages::gather(TensorId request, Rank rank, std::span<std::byte> shard) {
  const RankShards& shards = *images_of(rank).shards;
  shards.gather(request);
  std::span<const std::byte> held = shards.source(request);
  RESHARD_CHECK(held.size() == shard.size(), "a shard of another size");
  if (!shard.empty()) std::memcpy(shard.data(), held.data(), shard.size());
}

std::optional<PatternMismatch> StoredImages::scatter(TensorId request, Rank rank,
                                                     std::span<const std::byte> shard) {
  RankImages& images = images_of(rank);
  std::span<std::byte> held = images.shards->destination(request);
  RESHARD_CHECK(held.size() == shard.size(), "a shard of another size");
  if (!shard.empty()) std::memcpy(held.data(), shard.data(), shard.size());
  images.shards->scatter(request);
  PatternMismatch found{};
  const Stored& side = requests_.destination();
  for (Stored::PartId id : side.parts_of(rank, requests_.tensor_of(request)))
    if (requests_.written_by(id) == request)
      compare(side.buffers()[id.buffer], side[id], images.buffers.at({false, id.buffer})->data(),
              found);
  return found.count > 0 ? std::optional(found) : std::nullopt;
}

StoredImages::RankImages& StoredImages::images_of(Rank rank) {
  RankImages& out = ranks_[rank];
  if (!out.shards)
    out.shards =
        std::make_unique<RankShards>(requests_, rank, [&](const Stored& side, StoredBufferId id) {
          auto& image = out.buffers[{&side == &requests_.source(), id}];
          if (!image) image = image_of(side, id);
          return image->data();
        });
  return out;
}

// Those of the destination hold nothing yet.
std::unique_ptr<Block> StoredImages::image_of(const Stored& side, StoredBufferId id) const {
  const StoredBuffer& buffer = side.buffers()[id];
  auto out = std::make_unique<Block>(buffer.bytes());
  std::fill_n(out->data(), out->size(), kUntouched);
  std::int64_t bytes = size_bytes(buffer.dtype);
  std::vector<std::byte> row;
  if (&side == &requests_.destination()) return out;
  for (const StoredPart& part : buffer.parts) {
    ModelTensorId tensor = side.tensors()[part.tensor].same_as;
    for_each_row(side.tensors()[part.tensor], part,
                 [&](std::int64_t first, std::int64_t count, std::int64_t at, std::int64_t stride) {
                   row.resize(to_index(count * bytes));
                   fill_row(tensor, buffer.dtype, first, count, row.data());
                   copy_elements(row.data(), 1, out->data() + at * bytes, stride, count, bytes);
                 });
  }
  return out;
}

void StoredImages::fill_row(ModelTensorId tensor, DType dtype, std::int64_t first,
                            std::int64_t count, std::byte* out) const {
  auto pattern = patterns_.find(tensor);
  if (pattern == patterns_.end()) {  // no rank gets it
    std::fill_n(out, count * size_bytes(dtype), kUntouched);
    return;
  }
  if (!converted_.contains(tensor)) return pattern->second.fill_row(first, count, 0, out);
  // Integers that every floating dtype has, so that it does not matter who converts.
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t salt = std::uint64_t{to_index(tensor)} << 48;
    auto value = static_cast<double>(mix(static_cast<std::uint64_t>(first + i) ^ salt) % 16);
    std::byte bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    convert_row(DType::F64, bytes, dtype, out + i * size_bytes(dtype), 1);
  }
}

void StoredImages::compare(const StoredBuffer& buffer, const StoredPart& part,
                           const std::byte* memory, PatternMismatch& found) const {
  const ModelTensor& tensor = requests_.destination().tensors()[part.tensor];
  std::int64_t bytes = size_bytes(buffer.dtype);
  std::vector<std::byte> expected, held;
  auto bits = [&](const std::byte* element) {
    if (buffer.dtype == tensor.dtype) return bits_of(element, bytes);
    std::byte converted[8] = {};
    convert_row(buffer.dtype, element, tensor.dtype, converted, 1);
    return bits_of(converted, size_bytes(tensor.dtype));
  };
  for_each_row(tensor, part,
               [&](std::int64_t first, std::int64_t count, std::int64_t at, std::int64_t stride) {
                 expected.resize(to_index(count * bytes));
                 held.resize(expected.size());
                 fill_row(tensor.same_as, buffer.dtype, first, count, expected.data());
                 copy_elements(memory + at * bytes, stride, held.data(), 1, count, bytes);
                 if (expected == held) return;
                 for (std::int64_t i = 0; i < count; ++i) {
                   const std::byte *a = expected.data() + i * bytes, *b = held.data() + i * bytes;
                   if (std::memcmp(a, b, to_index(bytes)) == 0) continue;
                   if (found.count++ == 0) found = {1, first + i, bits(a), bits(b)};
                 }
               });
}

void StoredImages::check_padding() const {
  const Stored& side = requests_.destination();
  for (const auto& [rank, images] : ranks_)
    for (const auto& [key, image] : images.buffers) {
      if (key.first) continue;
      const StoredBuffer& buffer = side.buffers()[key.second];
      const std::byte* memory = image->data();
      std::vector<std::byte> left(to_index(image->size()), kUntouched);
      std::int64_t bytes = size_bytes(buffer.dtype);
      for (const StoredPart& part : buffer.parts)
        for_each_row(side.tensors()[part.tensor], part,
                     [&](std::int64_t, std::int64_t count, std::int64_t at, std::int64_t stride) {
                       copy_elements(memory + at * bytes, stride, left.data() + at * bytes, stride,
                                     count, bytes);
                     });
      auto wrong = std::mismatch(left.begin(), left.end(), memory).first;
      if (wrong != left.end())
        throw CheckFailure(
            fmt::format("data of rank {}: padding of buffer {} was written, element {}",
                        to_int(rank), quoted(buffer.name), (wrong - left.begin()) / bytes));
    }
}

}  // namespace reshard::sim
