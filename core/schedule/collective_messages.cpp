// SPDX-License-Identifier: BSD-3-Clause
// A member's launches of a collective, by a library or by messages.
#include "core/schedule/collective_messages.h"

#include <algorithm>
#include <utility>

namespace reshard {
namespace {

// The largest share of a cut along dim d, in elements.
std::int64_t largest_share(const Box& box, int d, std::int64_t n) {
  return box.volume() / box.extent(d) * ceil_div(box.extent(d), n);
}

int cut_dim(const Box& box, std::int64_t n) {
  std::int64_t even = ceil_div(box.volume(), n), nearly_even = even + even / 8;
  int best = 0;
  for (int d = 0; d < box.dims(); ++d) {
    if (largest_share(box, d, n) <= nearly_even) return d;
    if (largest_share(box, d, n) < largest_share(box, best, n)) best = d;
  }
  return best;
}

}  // namespace

Box share_of(const Box& box, std::int64_t i, std::int64_t n) {
  int d = cut_dim(box, n);
  std::int64_t base = box.extent(d) / n, rest = box.extent(d) % n;
  Box out = box;
  out.lo[d] = box.lo[d] + i * base + std::min(i, rest);
  out.hi[d] = out.lo[d] + base + (i < rest ? 1 : 0);
  return out;
}

CollectiveLaunches GroupPart::native(BufferId scratch) const {
  NativeCollective whole{step_.kind,
                         step_.op,
                         step_.divisor,
                         member_,
                         {place(member_, step_.input, input_.lo), input_.extents()},
                         {place(member_, step_.output, output_.lo), output_.extents()},
                         step_.input_dim,
                         step_.output_dim};
  if (scratch == BufferId{-1}) return {{whole}, true, {}};
  LocalWork division;
  division.op = step_.op;
  division.divisor = std::exchange(whole.divisor, 1);
  PlacedBox undivided{place(member_, scratch, DimVector(output_.dims())), whole.output.extents};
  division.folds.push_back({{undivided.at}, whole.output.at, undivided.extents});
  whole.output = undivided;
  return {{whole, std::move(division)}, true, undivided.extents};
}

CollectiveLaunches GroupPart::messages(BufferId scratch) const {
  bool gathers = step_.kind == CollectiveKind::AllGather || step_.kind == CollectiveKind::AllToAll;
  return gathers ? gathered() : folded(scratch);
}

Box GroupPart::part_for(std::int32_t member) const {
  if (step_.kind == CollectiveKind::AllGather) return input_;
  if (step_.kind == CollectiveKind::AllReduce) return share_of(input_, member, step_.group_size);
  return block_of(input_, step_.input_dim, member, step_.group_size);
}

// Empty messages are left out; peers ascend.
template <class MoveOf>
Messages GroupPart::with_all(MoveOf&& move) const {
  Messages out;
  auto add = [](std::vector<Messages::PeerMessage>& to, Slot peer, PlacedMove carried) {
    if (element_count(carried.extents) > 0) to.push_back({peer, {std::move(carried)}});
  };
  for (std::int32_t m = 0; m < step_.group_size; ++m) {
    if (m == member_) continue;
    Slot peer = group_[to_index(m)];
    add(out.sends, peer, move(member_, m));
    add(out.receives, peer, move(m, member_));
  }
  auto by_peer = [](const Messages::PeerMessage& a, const Messages::PeerMessage& b) {
    return a.peer < b.peer;
  };
  std::sort(out.sends.begin(), out.sends.end(), by_peer);
  std::sort(out.receives.begin(), out.receives.end(), by_peer);
  return out;
}

CollectiveLaunches GroupPart::gathered() const {
  auto move = [&](std::int32_t from, std::int32_t to) {
    Box part = part_for(to);
    Box block = block_of(output_, step_.output_dim, from, step_.group_size);
    return PlacedMove{place(from, step_.input, part.lo), place(to, step_.output, block.lo),
                      part.extents()};
  };
  LocalWork kept;
  kept.copies.push_back(move(member_, member_));
  return {{with_all(move), std::move(kept)}, false, {}};
}

// Operands arrive in scratch, in the order of the group. There is room for the member's own operand
// too, but it is read where it is.
CollectiveLaunches GroupPart::folded(BufferId scratch) const {
  bool all = step_.kind == CollectiveKind::AllReduce;
  auto operand = [&](std::int32_t from, std::int32_t to) {
    Box part = part_for(to);
    DimVector lo(part.dims());
    lo[0] = from * part.extent(0);
    return PlacedMove{place(from, step_.input, part.lo), place(to, scratch, lo), part.extents()};
  };
  auto result = [&](std::int32_t from, std::int32_t to) {
    Box part = all ? share_of(output_, from, step_.group_size) : output_;
    return PlacedMove{place(from, step_.output, part.lo), place(to, step_.output, part.lo),
                      part.extents()};
  };
  CollectiveLaunches out{{with_all(operand)}, true, part_for(member_).extents()};
  out.scratch[0] *= step_.group_size;
  LocalWork work;
  work.op = step_.op;
  work.divisor = step_.divisor;
  if (!part_for(member_).empty()) {
    LocalWork::Fold& fold = work.folds.emplace_back();
    fold.to = result(member_, member_).to;
    fold.extents = part_for(member_).extents();
    for (std::int32_t m = 0; m < step_.group_size; ++m)
      fold.operands.push_back(m == member_ ? operand(m, m).from : operand(m, member_).to);
  }
  out.works.push_back(std::move(work));
  if (all) out.works.push_back(with_all(result));
  return out;
}

}  // namespace reshard
