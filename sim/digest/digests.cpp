// SPDX-License-Identifier: BSD-3-Clause
#include "sim/digest/digests.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/printable.h"

namespace reshard::sim {
namespace {

// The text of so many blocks is about 1 GB.
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 24;

// A box of a tensor that some ranks have, and the places where its digests are needed.
struct WantedBox {
  const Weights::Tensor* weight;
  StridedView view;  // of the whole tensor in the weight
  ModelTensorId tensor;
  std::vector<BlockDigestsRef*> at;
};

// The bytes of a buffer that converts differ from the tensor's.
void refuse_conversion(const StoredBuffer& buffer) {
  if (buffer.converts)
    throw InputError(fmt::format(
        "buffer {} of rank {}: expected elements as their tensors have them, found them converted "
        "to {}, of which there is no digest",
        reshard::quoted(buffer.name, 200), to_int(buffer.rank), text(buffer.dtype)));
}

std::pair<const Weights::Tensor*, StridedView> place_of(const Weights& weights,
                                                        const ModelTensors& tensors,
                                                        ModelTensorId id,
                                                        const JoinedTensors& joined) {
  const ModelTensor& tensor = tensors[id];
  auto found = joined.find(tensors[tensor.same_as].name);
  if (found == joined.end())
    return {&weight_of(weights, tensors, id), view_of(box_of(tensor.shape), tensor.shape)};
  const Weights::Tensor& weight = *weights.find(found->second.in);
  if (weight.entry.dtype != tensor.dtype)
    throw InputError(
        fmt::format("{}: tensor {}: expected {}, as the layouts have {}, found {}", weight.place,
                    reshard::quoted(weight.entry.name, 200), text(tensor.dtype), tensor.name,
                    weight.entry.dtype ? text(*weight.entry.dtype) : weight.entry.dtype_name));
  return {&weight, found->second.view};
}

}  // namespace

SideDigests no_digests(const Stored& side) {
  SideDigests out;
  for (const StoredBuffer& buffer : side.buffers()) out.emplace_back(buffer.parts.size());
  return out;
}

std::string_view text(DigestSide side) { return side == DigestSide::From ? "from" : "to"; }

std::vector<DigestSide> parse_sides(std::string_view text, std::string_view field) {
  if (text == "from") return {DigestSide::From};
  if (text == "to") return {DigestSide::To};
  if (text == "both") return {DigestSide::From, DigestSide::To};
  throw InputError(
      fmt::format("{}: expected from, to or both, found {}", field, reshard::quoted(text)));
}

IndexVector<ModelTensorId, std::int64_t> rows_of(const ModelTensors& tensors, std::int64_t rows) {
  IndexVector<ModelTensorId, std::int64_t> out;
  for (std::size_t t = 0; t < tensors.size(); ++t)
    out.push_back(rows > 0 ? rows : default_rows(tensors[id_of<ModelTensorId>(t)]));
  return out;
}

void require_few_blocks(const Stored& side, const Digests& digests, std::string_view field) {
  std::int64_t blocks = 0;
  for (const StoredBuffer& buffer : side.buffers())
    for (const StoredPart& part : buffer.parts) {
      blocks += std::min(kMostBlocks + 1, block_count(part.box, digests.rows[part.tensor]));
      if (blocks > kMostBlocks)
        throw InputError(fmt::format(
            "{}: expected at most {} blocks on all ranks, found more; give blocks more rows", field,
            kMostBlocks));
    }
}

const Weights::Tensor& weight_of(const Weights& weights, const ModelTensors& tensors,
                                 ModelTensorId id) {
  const ModelTensor& tensor = tensors[id];
  const Weights::Tensor* found = weights.find(tensor.name);
  for (std::size_t t = 0; found == nullptr && t < tensors.size(); ++t)
    if (const ModelTensor& other = tensors[id_of<ModelTensorId>(t)];
        other.same_as == tensor.same_as)
      found = weights.find(other.name);
  if (found == nullptr)
    throw InputError(fmt::format("{}: expected tensor {}, as the layouts have it, found none",
                                 shown_path(weights.path()), reshard::quoted(tensor.name, 200)));
  const SafetensorsEntry& entry = found->entry;
  const std::vector<std::int64_t> shape(tensor.shape.begin(), tensor.shape.end());
  if (entry.dtype != tensor.dtype || entry.shape != shape)
    throw InputError(fmt::format(
        "{}: tensor {}: expected {}[{}], as the layouts have it, found {}[{}]", found->place,
        reshard::quoted(entry.name, 200), text(tensor.dtype), text(tensor.shape),
        entry.dtype ? text(*entry.dtype) : entry.dtype_name, fmt::join(entry.shape, ",")));
  return *found;
}

Digests digests_of_weights(const ModelLayouts& layouts, const Weights& weights,
                           std::span<const DigestSide> sides, std::int64_t rows,
                           const JoinedTensors& joined) {
  Digests out;
  out.file = weights.path();
  out.rows = rows_of(*layouts.tensors, rows);
  // In the order of the files, so that each is read once, from beginning to end.
  std::map<std::tuple<std::string_view, std::ptrdiff_t, Box>, WantedBox> wanted;
  for (DigestSide side : sides) {
    const Stored& stored = side_of(layouts, side);
    require_few_blocks(stored, out, "--rows");
    SideDigests& digests = out.of(side).emplace(no_digests(stored));
    for (std::size_t b = 0; b < stored.buffers().size(); ++b) {
      refuse_conversion(stored.buffers()[id_of<StoredBufferId>(b)]);
      for (std::size_t p = 0; p < stored.buffers()[b].parts.size(); ++p) {
        const StoredPart& part = stored.buffers()[b].parts[p];
        const auto [weight, view] = place_of(weights, *layouts.tensors, part.tensor, joined);
        auto begin = weight->entry.bytes.data() - weight->file->bytes().data() + view.offset;
        WantedBox& at = wanted[{weight->place, begin, part.box}];
        at.weight = weight;
        at.view = view;
        at.tensor = part.tensor;
        at.at.push_back(&digests[b][p]);
      }
    }
  }
  ViewDigester digester;
  for (auto at = wanted.begin(); at != wanted.end();) {
    const auto& [weight, view, tensor, places] = at->second;
    const Box& box = std::get<Box>(at->first);
    const ModelTensor& of = (*layouts.tensors)[tensor];
    auto done = std::make_shared<const BlockDigests>(
        digests_of(weight->entry.bytes, view_within(view, box_of(of.shape), box), box,
                   out.rows[tensor], size_bytes(of.dtype), digester));
    for (BlockDigestsRef* each : places) *each = done;
    ++at;
    if (at == wanted.end() || at->second.weight != weight)
      weight->file->release(weight->entry.bytes);
  }
  return out;
}

Digests digests_of_buffers(const ModelLayouts& layouts, DigestSide side, Rank rank,
                           std::span<const HeldBuffer> buffers, std::int64_t rows) {
  const Stored& stored = side_of(layouts, side);
  Digests out;
  out.file = fmt::format("rank {}", to_int(rank));
  out.rows = rows_of(*layouts.tensors, rows);
  require_few_blocks(stored, out, "rows");
  SideDigests& digests = out.of(side).emplace(no_digests(stored));
  std::vector<bool> seen(stored.buffers().size(), false);
  ViewDigester digester;
  for (const HeldBuffer& held : buffers) {
    std::optional<StoredBufferId> id = stored.find(rank, held.name);
    if (!id)
      throw InputError(
          fmt::format("buffers: expected those that rank {} has on the side {}, found {}",
                      to_int(rank), text(side), reshard::quoted(held.name, 200)));
    if (seen[to_index(*id)])
      throw InputError(fmt::format("buffers: expected each once, found {} twice",
                                   reshard::quoted(held.name, 200)));
    seen[to_index(*id)] = true;
    const StoredBuffer& buffer = stored.buffers()[*id];
    refuse_conversion(buffer);
    std::int64_t element = size_bytes(buffer.dtype), size = element_count(buffer.shape) * element;
    if (to_index(size) != held.bytes.size())
      throw InputError(fmt::format("buffer {} of rank {}: expected {} bytes, {}[{}], found {}",
                                   reshard::quoted(held.name, 200), to_int(rank), size,
                                   text(buffer.dtype), text(buffer.shape), held.bytes.size()));
    for (std::size_t p = 0; p < buffer.parts.size(); ++p) {
      const StoredPart& part = buffer.parts[p];
      digests[*id][p] = std::make_shared<const BlockDigests>(
          digests_of(held.bytes, part.view(), part.box, out.rows[part.tensor], element, digester));
    }
  }
  return out;
}

}  // namespace reshard::sim
