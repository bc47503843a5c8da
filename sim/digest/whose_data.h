// SPDX-License-Identifier: BSD-3-Clause
// Finds which elements of the model a wrong block has, by looking up its digests.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "sim/digest/digests.h"

namespace reshard::sim {

// A block of a rank that has another digest than expected.
struct WrongBlock {
  DigestSide side;
  StoredBufferId buffer;
  std::int32_t part;
  ModelTensorId tensor;
  Box box;
  std::uint64_t expected, expected_head, digest, head;
  // The elements that were found; -1: none.
  ModelTensorId got{-1};
  Box got_box = {};
  bool whole = false;    // false: only the beginning of the block is those elements
  bool swapped = false;  // the block's own data is where these elements should be
  int tries = 0;         // how many places it was compared with
};

class WhoseData {
 public:
  WhoseData(const ModelLayouts& layouts, const Digests& expected, std::vector<WrongBlock*> wrong);

  // Sets what the blocks have. `weights` may be null; then data is only found from the beginning of
  // a block that is expected somewhere.
  void find(const Weights* weights);

 private:
  using Wrong = std::vector<std::pair<std::uint64_t, WrongBlock*>>;  // ascending by digest
  void find_expected(bool heads);
  void find_rows(const Weights& weights);
  void scan_rows(const Weights::Tensor& weight, ModelTensorId tensor, const Box& columns,
                 std::int64_t head_rows, const Wrong& heads);
  void offer(WrongBlock& block, ModelTensorId tensor, const Box& box, bool whole);
  bool is_swapped(const WrongBlock& block, ModelTensorId tensor, const Box& box) const;
  std::int64_t bytes_of(ModelTensorId tensor, const Box& box) const;

  const ModelLayouts& layouts_;
  const Digests& expected_;
  std::vector<WrongBlock*> wrong_;
  Wrong by_digest_;
  // By place: the digests that were computed there.
  std::set<std::tuple<ModelTensorId, Box, std::uint64_t>> found_at_;
  ViewDigester digester_;
};

}  // namespace reshard::sim
