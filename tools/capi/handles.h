// SPDX-License-Identifier: BSD-3-Clause
// The objects that the handles of the C API point to. All are immutable once made.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/layout/request.h"
#include "core/plan/plan.h"
#include "core/schedule/temporaries.h"
#include "core/topology/topology.h"
#include "sim/study/study.h"
#include "tools/capi/reshard.h"

namespace reshard::sim {
class Job;
struct ModelLayouts;
}  // namespace reshard::sim

struct reshard_request {
  reshard::Request request;
  std::string id = {};  // in a job; empty: none
  std::vector<std::string> after = {};
};

struct reshard_topology {
  std::shared_ptr<const reshard::Topology> topology;
};

struct reshard_plan {
  // `named`: null, or the topology that the requests' file names, which is then the default;
  // `layouts`: null, or those that the requests are of.
  explicit reshard_plan(std::unique_ptr<reshard::sim::Job> planned,
                        std::shared_ptr<const reshard::Topology> named,
                        std::shared_ptr<const reshard::sim::ModelLayouts> layouts);
  ~reshard_plan();
  // Read or joined, so far without a topology. Proves the plan.
  explicit reshard_plan(const std::shared_ptr<const reshard::Plan>& read);

  // The job, for one thread at a time: what it finds out, it keeps. A plan that was read gets the
  // default topology.
  template <class Use>
  auto with_job(Use&& use) const {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!job_) job_ = job_of_plan(plan);
    return use(*job_);
  }

  // By tensor: Request::text.
  const std::vector<std::string>& request_texts() const;

  const std::shared_ptr<const reshard::Plan> plan;
  const reshard::sim::Study study;  // as proved; copied to find out more
  const std::string request_text;   // of all tensors
  const std::shared_ptr<const reshard::Topology> named_topology;
  const std::shared_ptr<const reshard::sim::ModelLayouts> layouts;

 private:
  static std::unique_ptr<reshard::sim::Job> job_of_plan(
      const std::shared_ptr<const reshard::Plan>& plan);

  mutable std::once_flag has_request_texts_;
  mutable std::vector<std::string> request_texts_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<reshard::sim::Job> job_;
};

struct reshard_program {
  reshard_program(std::shared_ptr<const reshard::Plan> of, reshard::Slot slot,
                  std::int64_t alignment);

  std::shared_ptr<const reshard::Plan> plan;
  // The program as the caller sees it, one operation per step, and the layout of its temporaries.
  reshard::RankSchedule schedule;
  reshard::TemporaryLayout temporaries;
  // Per operation: the global ranks of its group; empty unless it is a collective.
  std::vector<std::vector<std::int32_t>> groups;
  // The program as this library runs it: collectives become messages, and operands of folds get
  // scratch memory.
  reshard::RankSchedule messages;
  reshard::TemporaryLayout scratch;
};

namespace reshard::capi {

// The slot of a global rank. Throws InputError if the plan does not have that rank.
Slot slot_of(const Plan& plan, std::int32_t rank);

// 0 if the tensors' element sizes differ.
std::int32_t element_bytes_of(const Plan& plan);

// Fills the fields that plan and rank determine; sets arena_offset to -1.
reshard_buffer buffer_of(const Plan& plan, Slot slot, std::int32_t buffer);

}  // namespace reshard::capi
