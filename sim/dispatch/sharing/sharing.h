// SPDX-License-Identifier: BSD-3-Clause
// Which tensors of a trace share memory, and writes that do not reach all of it.
//
// A view shares the memory of its tensor. If PyTorch must redistribute the tensor first, the view
// belongs to the copy: a write to one is then missing from the other, unlike with whole tensors. So
// every value has two memories: the one that it would have as a whole tensor, and the one that it
// has on the ranks.
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

// The flat inputs of a call that are written to, ascending.
std::vector<std::size_t> written_inputs(const Operator& op, const OperatorLine& line);
// By output of the call: the flat input that it is, if it is one that was written to.
std::vector<std::optional<std::size_t>> outputs_written(const OperatorLine& line,
                                                        const std::vector<std::size_t>& written);
// Whether everything that it writes to is overwritten without being read.
bool overwrites(const Operator& op);

using MemoryId = std::int32_t;

// A value's place in its memory.
struct MemoryPlace {
  MemoryId whole, memory;
  MemoryView view;
};

struct Sharing {
  std::vector<std::optional<MemoryPlace>> places;  // by value
  std::vector<LostWrite> lost;
};
// Sharing among decided calls; `tensors` are the declaring lines. Throws InputError "FILE:LINE" for
// a write to a tensor of which several elements share one place in memory.
Sharing sharing_of(const std::string& file,
                   const std::vector<std::shared_ptr<const OperatorLine>>& tensors,
                   const std::vector<DispatchedCall>& calls);
// Known before lines are decided; by line: the values that later lines name and that may share
// memory with what it writes to.
std::vector<std::vector<ValueId>> stale_after(
    const std::vector<std::shared_ptr<const OperatorLine>>& tensors,
    const std::vector<std::shared_ptr<const OperatorLine>>& lines);

// "zero_ writes into t1, ..", a sentence about the line named first.
std::string text(const LostWrite& lost);

}  // namespace reshard::sim
