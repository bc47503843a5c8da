// SPDX-License-Identifier: BSD-3-Clause
// Tensors of a large job that lie alike, planned as one.
//
// The layers of a model have equal tensors: equal requests, but for the name. A *series* is such
// tensors of one stage as one request (Request::as_series) of one dim more, the first, which counts
// them and which no rank cuts. Its elements are those of the tensors, so a plan of the series is a
// plan of all of them, proved and timed in a fraction of the work. In memory every tensor stays a
// buffer of its own: what is contiguous or a box of its own is decided tensor by tensor.
// core/plan/written_out.h gives the plan of the tensors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/integers.h"
#include "core/layout/request.h"
#include "core/layout/stages.h"

namespace reshard {

struct SeriesJob {
  std::vector<Request> requests;               // in the order of their first tensors
  std::vector<std::vector<TensorId>> tensors;  // by request: those of the job, ascending
  Stages stages;                               // of the requests; empty: all at once
  std::size_t tensor_count() const;            // of the job
};

// The job with a series in place of every two or more tensors that can be one. What is folded,
// divided or made Partial stays as it is.
SeriesJob in_series(std::span<const Request> requests, const Stages& stages = {});

// Equally much of each of `tensors` tensors, one after the other, is a string of length `all`, a
// multiple of `tensors`. Calls visit(first, end, from, to, of) for what [lo, hi) of it has, in
// order: of tensors [first, end) all, or of one tensor the part from from/of to to/of.
template <class Visit>
void for_each_share(std::int64_t tensors, Int128 lo, Int128 hi, Int128 all, Visit&& visit) {
  const Int128 each = all / tensors;
  auto part_of = [&](std::int64_t tensor) {
    Int128 from = std::max<Int128>(lo - each * tensor, 0), to = std::min(hi - each * tensor, each);
    if (from < to) visit(tensor, tensor + 1, from, to, each);
  };
  auto first = static_cast<std::int64_t>(ceil_div(lo, each)),
       end = static_cast<std::int64_t>(hi / each);
  if (first > end) return part_of(end);
  if (first > 0) part_of(first - 1);
  if (first < end) visit(first, end, Int128{0}, each, each);
  if (end < tensors) part_of(end);
}

}  // namespace reshard
