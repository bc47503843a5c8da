// SPDX-License-Identifier: BSD-3-Clause
#include "sim/digest/compare.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/digest/digest_groups.h"
#include "sim/digest/whose_data.h"

namespace reshard::sim {
namespace {

class Comparer {
 public:
  Comparer(const ModelLayouts& layouts, const Digests& expected, const Digests& wrote)
      : layouts_(layouts), expected_(expected), wrote_(wrote) {}

  DigestComparison compare(std::span<const DigestSide> sides, const Weights* weights,
                           const BeforeDigests& before) {
    check_rows(wrote_);
    if (before.digests != nullptr) check_rows(*before.digests);
    for (DigestSide side : sides) compare_side(side);
    for (WrongBlock& block : wrong_) explain(block, before);
    std::vector<WrongBlock*> open;
    for (std::size_t i = 0; i < wrong_.size(); ++i)
      if (kinds_[i] == DigestFaultKind::OtherData) open.push_back(&wrong_[i]);
    WhoseData(layouts_, expected_, std::move(open)).find(weights);
    for (std::size_t i = 0; i < wrong_.size(); ++i)
      faults_.push_back(fault_of(wrong_[i], kinds_[i]));
    out_.findings = findings_of(std::move(faults_), layouts_, wrote_);
    return std::move(out_);
  }

 private:
  void check_rows(const Digests& other) const {
    for (std::size_t t = 0; t < expected_.rows.size(); ++t)
      if (expected_.rows[t] != other.rows[t])
        throw InputError(
            fmt::format("{}: expected blocks of {} rows of tensor {}, as in {}, found {}",
                        other.file, expected_.rows[t],
                        reshard::quoted((*layouts_.tensors)[id_of<ModelTensorId>(t)].name, 200),
                        expected_.file, other.rows[t]));
  }

  void compare_side(DigestSide side) {
    if (!expected_.of(side) || !wrote_.of(side))
      throw InputError(fmt::format("{}: expected digests of the side {}, found none",
                                   expected_.of(side) ? wrote_.file : expected_.file, text(side)));
    out_.sides.push_back(side);
    const Stored& stored = side_of(layouts_, side);
    for (std::size_t b = 0; b < stored.buffers().size(); ++b)
      for (std::size_t p = 0; p < stored.buffers()[b].parts.size(); ++p)
        compare_part(side, id_of<StoredBufferId>(b), p);
  }

  void compare_part(DigestSide side, StoredBufferId buffer, std::size_t number) {
    const StoredBuffer& of = side_of(layouts_, side).buffers()[buffer];
    const StoredPart& part = of.parts[number];
    const BlockDigestsRef& expected = (*expected_.of(side))[buffer][number];
    const BlockDigestsRef& wrote = (*wrote_.of(side))[buffer][number];
    auto id = static_cast<std::int32_t>(number);
    if (!expected)
      throw InputError(fmt::format(
          "{}: expected digests of every part of the side {}, found none of {} in {} of rank {}",
          expected_.file, text(side), element_text((*layouts_.tensors)[part.tensor], part.box),
          reshard::quoted(of.name, 200), to_int(of.rank)));
    if (!wrote) {
      faults_.push_back({DigestFaultKind::Missing, side, buffer, id, part.box});
      return;
    }
    for (std::size_t i = 0; i < expected->blocks.size(); ++i) {
      ++out_.blocks;
      if (expected->blocks[i] == wrote->blocks[i]) continue;
      if (wrong_.size() >= DigestComparison::kMostPlaces) {
        out_.all_places = false;
        continue;
      }
      Box box = block_at(part.box, expected_.rows[part.tensor], static_cast<std::int64_t>(i));
      wrong_.push_back({side, buffer, id, part.tensor, box, expected->blocks[i], expected->heads[i],
                        wrote->blocks[i], wrote->heads[i]});
    }
    add_bytes(out_.bytes, Int128{part.box.volume()} * size_bytes(of.dtype));
  }

  void explain(const WrongBlock& block, const BeforeDigests& before) {
    std::int64_t bytes = block.box.volume() * size_bytes((*layouts_.tensors)[block.tensor].dtype);
    auto [zeros, fresh] = zeros_.emplace(bytes, 0);
    if (fresh) zeros->second = digester_.zeros(bytes);
    kinds_.push_back(block.digest == zeros->second              ? DigestFaultKind::Zeros
                     : block.digest == before_at(block, before) ? DigestFaultKind::Stale
                                                                : DigestFaultKind::OtherData);
  }

  // The digest of the data from before, if known: of the same part, or else of any part with the
  // same elements.
  std::optional<std::uint64_t> before_at(const WrongBlock& block, const BeforeDigests& before) {
    const ModelTensor& tensor = (*layouts_.tensors)[block.tensor];
    if (before.weights != nullptr) {
      const Weights::Tensor& weight = weight_of(*before.weights, *layouts_.tensors, block.tensor);
      if (before_ != nullptr && before_ != &weight) before_->file->release(before_->entry.bytes);
      before_ = &weight;
      return digester_.digest(weight.entry.bytes, view_of(block.box, tensor.shape),
                              size_bytes(tensor.dtype));
    }
    if (before.digests == nullptr) return std::nullopt;
    const StoredPart& part =
        side_of(layouts_, block.side).buffers()[block.buffer].parts[to_index(block.part)];
    BlockDigestsRef found;
    if (const auto& side = before.digests->of(block.side))
      found = (*side)[block.buffer][to_index(block.part)];
    if (!found) found = any_before(*before.digests, part);
    if (!found) return std::nullopt;
    std::int64_t rows = expected_.rows[block.tensor];
    std::int64_t index = part.box.dims() == 0 ? 0 : block.box.lo[0] / rows - part.box.lo[0] / rows;
    return found->blocks[to_index(index)];
  }

  BlockDigestsRef any_before(const Digests& before, const StoredPart& part) {
    if (by_box_.empty())
      for (DigestSide side : kDigestSides)
        if (before.of(side))
          for (std::size_t b = 0; b < before.of(side)->size(); ++b)
            for (std::size_t p = 0; p < (*before.of(side))[b].size(); ++p) {
              const StoredPart& held = side_of(layouts_, side).buffers()[b].parts[p];
              if (const BlockDigestsRef& digests = (*before.of(side))[b][p])
                by_box_.emplace(std::pair(held.tensor, held.box), digests);
            }
    auto found = by_box_.find({part.tensor, part.box});
    return found == by_box_.end() ? nullptr : found->second;
  }

  DigestFault fault_of(const WrongBlock& block, DigestFaultKind kind) const {
    DigestFault out{kind, block.side, block.buffer, block.part, block.box};
    if (kind != DigestFaultKind::OtherData || block.got == ModelTensorId{-1}) return out;
    const ModelTensors& tensors = *layouts_.tensors;
    bool same = tensors[block.got].same_as == tensors[block.tensor].same_as;
    out.kind = same ? DigestFaultKind::WrongIndex : DigestFaultKind::WrongTensor;
    out.got = block.got;
    out.got_box = block.got_box;
    out.whole = block.whole;
    out.swapped = block.swapped;
    return out;
  }

  const ModelLayouts& layouts_;
  const Digests &expected_, &wrote_;
  DigestComparison out_;
  std::deque<WrongBlock> wrong_;
  std::vector<DigestFaultKind> kinds_;  // by block in wrong_
  std::vector<DigestFault> faults_;
  std::map<std::int64_t, std::uint64_t> zeros_;  // by size
  const Weights::Tensor* before_ = nullptr;      // the tensor that was read last
  std::map<std::pair<ModelTensorId, Box>, BlockDigestsRef> by_box_;
  ViewDigester digester_;
};

}  // namespace

std::string_view text(DigestFaultKind kind) {
  switch (kind) {
    case DigestFaultKind::WrongTensor:
      return "wrong tensor";
    case DigestFaultKind::WrongIndex:
      return "wrong place";
    case DigestFaultKind::Stale:
      return "stale";
    case DigestFaultKind::Zeros:
      return "zeros";
    case DigestFaultKind::OtherData:
      return "other data";
    default:
      return "missing";
  }
}

DigestComparison compare_digests(const ModelLayouts& layouts, const Digests& expected,
                                 const Digests& wrote, std::span<const DigestSide> sides,
                                 const Weights* weights, const BeforeDigests& before) {
  return Comparer(layouts, expected, wrote).compare(sides, weights, before);
}

}  // namespace reshard::sim
