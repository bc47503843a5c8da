// SPDX-License-Identifier: BSD-3-Clause
// Connects files of digests with layouts: finds parts by name, and joins equal parts of several
// ranks. (digest_text.cpp reads and writes the text of a file.)
#include "sim/digest/digest_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/sort_once.h"

namespace reshard::sim {
namespace {

// Identifies a part, except for its rank.
using PartKey = std::tuple<DigestSide, std::int32_t, Box, std::string, std::int32_t>;
PartKey key_of(const DigestPart& part) {
  return {part.side, part.tensor, part.box, part.buffer, part.time};
}

std::string name_of(const DigestFile& file, const DigestPart& part) {
  return fmt::format("{} in buffer {} of the side {}",
                     element_text({file.tensors[to_index(part.tensor)].name,
                                   file.tensors[to_index(part.tensor)].shape,
                                   DType::U8,
                                   {}},
                                  part.box),
                     reshard::quoted(part.buffer, 200), text(part.side));
}

// Joins parts that differ only in their ranks, and sorts all parts.
void join(std::vector<DigestPart>& parts) {
  std::vector<DigestPart> out;
  std::stable_sort(parts.begin(), parts.end(), [](const DigestPart& a, const DigestPart& b) {
    return std::tuple(key_of(a), std::tie(a.ranks)) < std::tuple(key_of(b), std::tie(b.ranks));
  });
  for (std::size_t first = 0, end; first < parts.size(); first = end) {
    std::map<BlockDigests, std::size_t> by_digests;
    for (end = first; end < parts.size() && key_of(parts[end]) == key_of(parts[first]); ++end) {
      auto [at, fresh] = by_digests.emplace(*parts[end].digests, out.size());
      if (fresh) {
        out.push_back(std::move(parts[end]));
        continue;
      }
      std::vector<Rank>& ranks = out[at->second].ranks;
      ranks.insert(ranks.end(), parts[end].ranks.begin(), parts[end].ranks.end());
    }
  }
  for (DigestPart& part : out) std::sort(part.ranks.begin(), part.ranks.end());
  parts = std::move(out);
}

// The parts of a side by buffer, tensor and box.
class PartIndex {
 public:
  explicit PartIndex(const Stored& side) {
    for (const StoredBuffer& buffer : side.buffers()) {
      auto& keys = keys_.emplace_back();
      for (std::size_t p = 0; p < buffer.parts.size(); ++p)
        keys.push_back({to_index(buffer.parts[p].tensor), buffer.parts[p].box, p});
      std::sort(keys.begin(), keys.end());
    }
  }

  // The part of this tensor and box that has number `time` among several.
  std::optional<std::size_t> find(StoredBufferId buffer, std::size_t tensor, const Box& box,
                                  std::int32_t time) const {
    const auto& keys = keys_[buffer];
    auto at = std::lower_bound(keys.begin(), keys.end(), Key{tensor, box, 0});
    if (time >= keys.end() - at) return std::nullopt;
    const auto& [its_tensor, its_box, part] = *(at + time);
    return its_tensor == tensor && its_box == box ? std::optional(part) : std::nullopt;
  }
  std::int32_t time_of(StoredBufferId buffer, const StoredPart& part, std::size_t number) const {
    const auto& keys = keys_[buffer];
    std::size_t tensor = to_index(part.tensor);
    return static_cast<std::int32_t>(
        std::lower_bound(keys.begin(), keys.end(), Key{tensor, part.box, number}) -
        std::lower_bound(keys.begin(), keys.end(), Key{tensor, part.box, 0}));
  }

 private:
  using Key = std::tuple<std::size_t, Box, std::size_t>;
  IndexVector<StoredBufferId, std::vector<Key>> keys_;
};

}  // namespace

DigestFile file_of(const Digests& digests, const ModelLayouts& layouts) {
  DigestFile out;
  out.place = digests.file;
  for (std::size_t t = 0; t < layouts.tensors->size(); ++t) {
    const ModelTensor& tensor = (*layouts.tensors)[id_of<ModelTensorId>(t)];
    out.tensors.push_back({tensor.name, tensor.shape, tensor.dtype, digests.rows[t]});
  }
  for (DigestSide side : kDigestSides) {
    if (!digests.of(side)) continue;
    out.sides.push_back(side);
    const Stored& stored = side_of(layouts, side);
    PartIndex index(stored);
    for (std::size_t b = 0; b < stored.buffers().size(); ++b) {
      const StoredBuffer& buffer = stored.buffers()[b];
      for (std::size_t p = 0; p < buffer.parts.size(); ++p) {
        const StoredPart& part = buffer.parts[p];
        if (const BlockDigestsRef& found = (*digests.of(side))[b][p])
          out.parts.push_back({side,
                               std::string(buffer.name),
                               static_cast<std::int32_t>(part.tensor),
                               part.box,
                               index.time_of(id_of<StoredBufferId>(b), part, p),
                               found,
                               {buffer.rank}});
      }
    }
  }
  join(out.parts);
  return out;
}

DigestFile gathered(const std::vector<DigestFile>& files) {
  if (files.empty()) throw InputError("digests: expected at least one, found none");
  DigestFile out;
  out.tensors = files.front().tensors;
  std::set<std::tuple<Rank, PartKey>> seen;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i].tensors != out.tensors)
      throw InputError(fmt::format("{}: expected the tensors and rows of {}, found others",
                                   files[i].place, files.front().place));
    out.sides.insert(out.sides.end(), files[i].sides.begin(), files[i].sides.end());
    for (const DigestPart& part : files[i].parts) {
      for (Rank rank : part.ranks)
        if (!seen.emplace(rank, key_of(part)).second)
          throw InputError(
              fmt::format("{}: expected each part of a rank once, found {} of "
                          "rank {} again",
                          files[i].place, name_of(files[i], part), to_int(rank)));
      out.parts.push_back(part);
    }
  }
  sort_once(out.sides);
  join(out.parts);
  return out;
}

Digests digests_in(const DigestFile& file, const ModelLayouts& layouts, const std::string& place) {
  const ModelTensors& tensors = *layouts.tensors;
  Digests out;
  out.file = place;
  if (file.tensors.size() != tensors.size())
    throw InputError(fmt::format("{}: expected digests of these layouts, of {} tensors, found {}",
                                 place, tensors.size(), file.tensors.size()));
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const ModelTensor& tensor = tensors[id_of<ModelTensorId>(t)];
    const DigestTensor& found = file.tensors[t];
    if (DigestTensor{tensor.name, tensor.shape, tensor.dtype, found.rows} != found)
      throw InputError(
          fmt::format("{}: expected digests of these layouts, with {} {}[{}], found {} {}[{}]",
                      place, tensor.name, text(tensor.dtype), text(tensor.shape), found.name,
                      text(found.dtype), text(found.shape)));
    out.rows.push_back(found.rows);
  }
  std::optional<PartIndex> indices[2];
  for (DigestSide side : file.sides) {
    out.of(side) = no_digests(side_of(layouts, side));
    indices[to_index(side)].emplace(side_of(layouts, side));
  }
  for (const DigestPart& part : file.parts)
    for (Rank rank : part.ranks) {
      std::optional<StoredBufferId> id = side_of(layouts, part.side).find(rank, part.buffer);
      std::optional<std::size_t> at;
      if (id)
        at = indices[to_index(part.side)]->find(*id, to_index(part.tensor), part.box, part.time);
      if (!at)
        throw InputError(fmt::format("{}: expected parts of these layouts, found {} on rank {}",
                                     place, name_of(file, part), to_int(rank)));
      (*out.of(part.side))[*id][*at] = part.digests;
    }
  return out;
}

}  // namespace reshard::sim
