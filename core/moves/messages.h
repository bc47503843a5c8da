// SPDX-License-Identifier: BSD-3-Clause
// Collects moves between ranks in any order and returns them as an exchange step: one message per
// pair of ranks, ascending.
#pragma once

#include "core/plan/plan.h"

namespace reshard {

// Appends the boxes as parts of `slot`. Throws InputError beyond kMaxMoves.
void add_fills(FillStep& fill, Slot slot, BufferId buffer, const std::vector<Box>& boxes);

// Sorts the parts by slot, and the operands along with them.
void sort_parts(ReduceStep& step);

class MessageSorter {
 public:
  MessageSorter(int dims, std::size_t slots) : slots_(slots), moves_(dims) {}

  // `source` != `destination`. The moves of one pair keep their order.
  void add(Slot source, Slot destination, const Move& move) {
    check_size(moves_);
    ends_.push_back({source, destination});
    moves_.push_back(move);
  }
  bool empty() const { return ends_.empty(); }
  // Leaves this empty. Takes linear time: two counting sorts by slot.
  ExchangeStep take();

 private:
  struct Ends {
    Slot source, destination;
  };
  std::size_t slots_;
  std::vector<Ends> ends_;  // per move
  MoveList moves_;
};

// The same for local moves: one part per slot.
class LocalMoves {
 public:
  LocalMoves(int dims, std::size_t slots) : by_slot_(slots), moves_(dims) {}
  void add(Slot slot, const Move& move) {
    check_size(moves_);
    by_slot_[to_index(slot)].push_back(static_cast<std::uint32_t>(moves_.size()));
    moves_.push_back(move);
  }
  bool empty() const { return moves_.size() == 0; }
  CopyStep take();

 private:
  std::vector<std::vector<std::uint32_t>> by_slot_;
  MoveList moves_;
};

}  // namespace reshard
