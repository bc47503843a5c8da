// SPDX-License-Identifier: BSD-3-Clause
// What reports show about a job of many tensors: its size; for each kind of tensor, its use in the
// run and its least time alone; and the fullest links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/bounds/bounds.h"
#include "core/layout/request.h"
#include "core/layout/stages.h"
#include "core/topology/topology.h"
#include "sim/study/run_facts.h"
#include "sim/study/tensors/tensor_groups.h"
#include "sim/study/tensors/tensor_use.h"

namespace reshard::sim {

// Tensors of a job that are reported together, such as those of one kind.
struct GroupFacts {
  explicit GroupFacts(const Request& of) : first(of) {}

  std::string name;                                   // TensorGroup::name
  std::string text;                                   // of a kind kind_text(first)
  Request first;                                      // that of its first tensor
  std::vector<std::size_t> tensors;                   // indices in the job, ascending
  std::vector<Rank> source_ranks, destination_ranks;  // of all its tensors, ascending
  std::int64_t bytes = 0;                             // of the tensors, each counted once
  TensorUse use;
  // For these tensors alone, on the ranks of the whole job.
  Bound bound;
  std::int64_t least_received_bytes = 0;  // that ranks must receive, whatever the plan
};

// For the whole tensor.
Int128 bytes_of(const Request& request);
// "bf16[384,4096,7168] S(0) on ep=32 -> RS(0) on replica=4,tp=32", without ranks.
std::string kind_text(const Request& request);

// For each group. `uses` by tensor; `sets` of all ranks of the tensors. `demand`, unless null, is
// set to the sum of the groups' demands on the sets.
std::vector<GroupFacts> group_facts(std::span<const TensorGroup> groups,
                                    std::span<const Request* const> tensors,
                                    std::span<const TensorUse> uses, const CutSets& sets,
                                    RequestDemand* demand = nullptr);

// The fullest link, and the number of similar links.
struct FullLinks {
  std::string kind;       // "nic.in"
  std::int64_t full = 0;  // links of this kind that are at most 1 % less full than the fullest,
  std::int64_t used = 0;  // and that carried bytes
  LinkUse fullest;
};
// None if no link carried bytes.
std::optional<FullLinks> full_links(const Timeline& timeline, const Topology& topology);

struct JobFacts {
  std::vector<GroupFacts> kinds;  // most received bytes first, then most bytes, then by tensor
  std::optional<FullLinks> full;
};

// As group_facts(); `timeline` of the run.
JobFacts job_facts(std::span<const Request* const> tensors, std::span<const TensorUse> uses,
                   const Timeline& timeline, const CutSets& sets, RequestDemand* demand = nullptr);

// "976 tensors of 21 kinds, 1.914 TiB, ranks 0-255 -> 256-383", followed by ", in 8 stages"; for
// one tensor, Request::text.
std::string job_text(std::span<const Request> tensors, const Stages& stages = {});

}  // namespace reshard::sim
