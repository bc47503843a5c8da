// SPDX-License-Identifier: BSD-3-Clause
// The order of a job's tensors, and the stages that follow from it.
//
// A tensor can come after others of its job. Order holds per rank, as between the steps of a plan:
// a rank begins its part of a tensor when its own parts of all tensors before that one, directly or
// through others, are done. There is no barrier: other ranks may still work on those.
//
// A *stage* is all tensors that have the same tensors before them and the same after them. None of
// them comes after another, and whatever waits for one of them waits for all: they can be planned
// together without making any rank wait longer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/digest.h"
#include "core/base/ids.h"
#include "core/layout/request.h"

namespace reshard {

struct Stage {
  std::vector<TensorId> tensors;    // ascending, at least one
  std::vector<std::int32_t> after;  // stages that come directly before, ascending, all earlier
  friend bool operator==(const Stage&, const Stage&) = default;
};
// The stages of a job; each tensor is in exactly one. Empty: all tensors at once.
using Stages = std::vector<Stage>;

// By tensor: those that it comes after, in any order.
using TensorOrder = IndexVector<TensorId, std::vector<TensorId>>;

// More stages than this, each planned by itself, take too long.
inline constexpr std::size_t kMaxStages = 4096;

// The stages that follow from an order without cycles: each after those that it waits for,
// otherwise by their first tensors. Throws InputError above kMaxStages.
Stages stages_of(const TensorOrder& order);
// The same from groups of tensors, in any order, that all come after the tensors of other groups.
Stages stages_of(const Stages& groups);
// Joins the groups of independent jobs: adds `groups` of `tensors` tensors, numbered from
// `first` on. A job without stages is one group.
void add_groups(Stages& to, const Stages& groups, std::size_t tensors, std::size_t first);
// By tensor: its stage, 0 if there are none.
IndexVector<TensorId, std::int32_t> stage_of_tensors(const Stages& stages, std::size_t tensors);

// Identity of a job: that of its requests, and of their order.
Digest fingerprint_of(std::span<const Request> requests, const Stages& stages);
// text_of(requests), and how many stages there are.
std::string text_of(std::span<const Request> requests, const Stages& stages);

}  // namespace reshard
