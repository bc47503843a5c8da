// SPDX-License-Identifier: BSD-3-Clause
// Which tensors of a trace share memory, and writes that do not reach all of it.
//
// A view shares the memory of its tensor. Where PyTorch must redistribute the tensor first, the
// view is one of the copy: what is written into one is then not in the other, as it would be if the
// tensors were whole. So every value has two memories: the one that it has as a whole tensor, and
// the one that it has on the ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/dispatch/dispatched.h"
#include "sim/dispatch/sharing/memory_view.h"
#include "sim/trace/operator_line.h"

namespace reshard::sim {

// Which of a call's flat inputs are written to, ascending.
std::vector<std::size_t> written_inputs(const Operator& op, const OperatorLine& line);
// Of the call's outputs the flat input that each is, where it is one that was written to.
std::vector<std::optional<std::size_t>> outputs_written(const OperatorLine& line,
                                                        const std::vector<std::size_t>& written);
// Whether all that it writes to is overwritten without a look at what was there.
bool overwrites(const Operator& op);

using MemoryId = std::int32_t;

// A value's place in the memory that it has.
struct MemoryPlace {
  MemoryId whole, memory;
  MemoryView view;
};

struct Sharing {
  std::vector<std::optional<MemoryPlace>> places;  // by value
  std::vector<LostWrite> lost;
};
// Of calls that are decided, whose lines declare `tensors`. Throws InputError "FILE:LINE" for a
// write to a tensor of which several elements lie in one place.
Sharing sharing_of(const std::string& file,
                   const std::vector<std::shared_ptr<const OperatorLine>>& tensors,
                   const std::vector<DispatchedCall>& calls);
// Before lines are decided: after each of them, the values that later ones name and that may share
// memory with what it writes to.
std::vector<std::vector<ValueId>> stale_after(
    const std::vector<std::shared_ptr<const OperatorLine>>& tensors,
    const std::vector<std::shared_ptr<const OperatorLine>>& lines);

// "zero_ writes into t1, ..", a sentence on the line that it names first.
std::string text(const LostWrite& lost);

}  // namespace reshard::sim
