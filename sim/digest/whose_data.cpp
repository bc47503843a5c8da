// SPDX-License-Identifier: BSD-3-Clause
#include "sim/digest/whose_data.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

namespace reshard::sim {
namespace {

// Shorter blocks, and shorter heads without their blocks, are often equal by chance.
constexpr std::int64_t kLeastBytes = 4, kLeastHeadBytes = 16;
// A block is compared with at most so many places after the first: repetitive data has many.
constexpr int kMostTries = 64;

// The blocks with this digest.
template <class List>
auto equal_in(const List& list, std::uint64_t digest) {
  auto less = [](const auto& a, const auto& b) { return a.first < b.first; };
  return std::equal_range(list.begin(), list.end(), typename List::value_type{digest, nullptr},
                          less);
}

bool equal_columns(const Box& a, const Box& b) {
  if (a.dims() != b.dims()) return false;
  for (int d = 1; d < a.dims(); ++d)
    if (a.lo[d] != b.lo[d] || a.hi[d] != b.hi[d]) return false;
  return true;
}

}  // namespace

WhoseData::WhoseData(const ModelLayouts& layouts, const Digests& expected,
                     std::vector<WrongBlock*> wrong)
    : layouts_(layouts), expected_(expected), wrong_(std::move(wrong)) {
  for (WrongBlock* block : wrong_) {
    by_digest_.emplace_back(block->digest, block);
    found_at_.emplace((*layouts_.tensors)[block->tensor].same_as, block->box, block->digest);
  }
  std::stable_sort(by_digest_.begin(), by_digest_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
}

void WhoseData::find(const Weights* weights) {
  find_expected(false);
  if (weights != nullptr)
    find_rows(*weights);
  else
    find_expected(true);
}

// Finds blocks that are expected somewhere, by their digests or by those of their heads.
void WhoseData::find_expected(bool heads) {
  Wrong wanted;
  for (auto& [digest, block] : by_digest_)
    if (!heads)
      wanted.emplace_back(digest, block);
    else if (block->got == ModelTensorId{-1} && block->head != block->expected_head &&
             bytes_of(block->tensor,
                      head_of(block->box, size_bytes((*layouts_.tensors)[block->tensor].dtype))) >=
                 kLeastHeadBytes)
      wanted.emplace_back(block->head, block);
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::set<std::pair<ModelTensorId, Box>> seen;
  for (DigestSide side : kDigestSides) {
    if (!expected_.of(side)) continue;
    const Stored& stored = side_of(layouts_, side);
    for (std::size_t b = 0; b < stored.buffers().size(); ++b)
      for (std::size_t p = 0; p < stored.buffers()[b].parts.size(); ++p) {
        const StoredPart& part = stored.buffers()[b].parts[p];
        const BlockDigestsRef& digests = (*expected_.of(side))[b][p];
        if (!digests || !seen.emplace(part.tensor, part.box).second) continue;
        const auto& list = heads ? digests->heads : digests->blocks;
        for (std::size_t i = 0; i < list.size(); ++i) {
          auto [first, last] = equal_in(wanted, list[i]);
          if (first == last) continue;
          Box box = block_at(part.box, expected_.rows[part.tensor], static_cast<std::int64_t>(i));
          for (auto at = first; at != last; ++at) offer(*at->second, part.tensor, box, !heads);
        }
      }
  }
}

// Every row of every tensor, in the columns that ranks have, is a candidate for the beginning of a
// wrong block.
void WhoseData::find_rows(const Weights& weights) {
  const ModelTensors& tensors = *layouts_.tensors;
  // By the bytes of a row, then by the rows of the head.
  std::map<std::int64_t, std::map<std::int64_t, Wrong>> wanted;
  for (WrongBlock* block : wrong_) {
    if (block->whole || block->head == block->expected_head || block->box.dims() == 0) continue;
    Box head = head_of(block->box, size_bytes(tensors[block->tensor].dtype));
    std::int64_t bytes = bytes_of(block->tensor, head);
    if (bytes_of(block->tensor, block->box) < kLeastBytes) continue;
    wanted[bytes / head.extent(0)][head.extent(0)].emplace_back(block->head, block);
  }
  if (wanted.empty()) return;
  for (auto& [row, by_rows] : wanted)
    for (auto& [rows, heads] : by_rows)
      std::stable_sort(heads.begin(), heads.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
  std::set<std::pair<ModelTensorId, Box>> columns;
  for (DigestSide side : kDigestSides)
    for (const StoredBuffer& buffer : side_of(layouts_, side).buffers())
      for (const StoredPart& part : buffer.parts) {
        if (part.box.dims() == 0) continue;
        Box of = part.box;
        of.lo[0] = 0;
        of.hi[0] = tensors[part.tensor].shape[0];
        columns.emplace(part.tensor, of);
      }
  for (const auto& [tensor, of] : columns) {
    auto found = wanted.find(bytes_of(tensor, of) / of.extent(0));
    if (found == wanted.end()) continue;
    const Weights::Tensor& weight = weight_of(weights, tensors, tensor);
    for (const auto& [rows, heads] : found->second) scan_rows(weight, tensor, of, rows, heads);
    weight.file->release(weight.entry.bytes);
  }
}

void WhoseData::scan_rows(const Weights::Tensor& weight, ModelTensorId tensor, const Box& columns,
                          std::int64_t head_rows, const Wrong& heads) {
  const ModelTensor& of = (*layouts_.tensors)[tensor];
  std::int64_t element = size_bytes(of.dtype);
  Box head = columns;
  for (std::int64_t row = 0; row + head_rows <= columns.hi[0]; ++row) {
    head.lo[0] = row;
    head.hi[0] = row + head_rows;
    auto [first, last] = equal_in(
        heads, head_digest(weight.entry.bytes, view_of(head, of.shape), element, digester_));
    for (auto at = first; at != last; ++at) {
      WrongBlock& block = *at->second;
      if (block.tries >= kMostTries) continue;
      Box box = columns;
      box.lo[0] = row;
      box.hi[0] = row + block.box.extent(0);
      bool whole =
          box.hi[0] <= of.shape[0] &&
          digester_.digest(weight.entry.bytes, view_of(box, of.shape), element) == block.digest;
      if (!whole && bytes_of(tensor, head) < kLeastHeadBytes) {
        ++block.tries;
        continue;
      }
      offer(block, tensor, whole ? box : head, whole);
    }
  }
}

// Keeps the best explanation of a block: preferably of all of it rather than its beginning, data
// that was exchanged with its own, data of its own tensor, of the same columns, from nearby.
void WhoseData::offer(WrongBlock& block, ModelTensorId tensor, const Box& box, bool whole) {
  if (whole && bytes_of(block.tensor, block.box) < kLeastBytes) return;
  if (++block.tries > kMostTries) return;
  const ModelTensors& tensors = *layouts_.tensors;
  auto rank = [&](ModelTensorId id, const Box& at, bool is_whole, bool swapped) {
    bool same = tensors[id].same_as == tensors[block.tensor].same_as;
    bool columns = same && equal_columns(at, block.box);
    std::int64_t far = columns && at.dims() > 0 ? std::abs(at.lo[0] - block.box.lo[0]) : 0;
    return std::tuple(!is_whole, !swapped, !same, !columns, far);
  };
  bool swapped = whole && is_swapped(block, tensor, box);
  if (block.got != ModelTensorId{-1} && rank(block.got, block.got_box, block.whole,
                                             block.swapped) <= rank(tensor, box, whole, swapped))
    return;
  block.got = tensor;
  block.got_box = box;
  block.whole = whole;
  block.swapped = swapped;
}

bool WhoseData::is_swapped(const WrongBlock& block, ModelTensorId tensor, const Box& box) const {
  return found_at_.contains({(*layouts_.tensors)[tensor].same_as, box, block.expected});
}

std::int64_t WhoseData::bytes_of(ModelTensorId tensor, const Box& box) const {
  return box.volume() * size_bytes((*layouts_.tensors)[tensor].dtype);
}

}  // namespace reshard::sim
