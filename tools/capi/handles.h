// SPDX-License-Identifier: BSD-3-Clause
// What stands behind the handles of the C API. All are immutable once made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/layout/request.h"
#include "core/plan/plan.h"
#include "core/schedule/temporaries.h"
#include "core/topology/topology.h"
#include "sim/study/study.h"
#include "tools/capi/reshard.h"

struct reshard_request {
  reshard::Request request;
};

struct reshard_topology {
  std::shared_ptr<const reshard::Topology> topology;
};

struct reshard_plan {
  explicit reshard_plan(const reshard::sim::Study& of)
      : study(of), plan(of.shared_plan()), request_text(requests_text(*plan)) {}

  // Copied where more shall be found out: threads may share a handle.
  const reshard::sim::Study study;
  const std::shared_ptr<const reshard::Plan> plan;
  const std::string request_text;
};

struct reshard_program {
  reshard_program(std::shared_ptr<const reshard::Plan> of, reshard::Slot slot,
                  std::int64_t alignment);

  std::shared_ptr<const reshard::Plan> plan;
  // As the caller sees it, one operation per step, and where its temporaries lie.
  reshard::RankSchedule schedule;
  reshard::TemporaryLayout temporaries;
  // Per operation: global ranks of its group; empty where it is no collective.
  std::vector<std::vector<std::int32_t>> groups;
  // As it is run here: collectives are messages, and operands of folds have scratch.
  reshard::RankSchedule messages;
  reshard::TemporaryLayout scratch;
};

namespace reshard::capi {

// The slot of a global rank. Throws InputError where the plan does not have it.
Slot slot_of(const Plan& plan, std::int32_t rank);

// 0 where tensors differ.
std::int32_t element_bytes_of(const Plan& plan);

// Fills the fields that plan and rank determine; arena_offset -1.
reshard_buffer buffer_of(const Plan& plan, Slot slot, std::int32_t buffer);

}  // namespace reshard::capi
