// SPDX-License-Identifier: BSD-3-Clause
// Plans those tensors of a large job that have equal layouts as one tensor.
//
// The layers of a model have equal tensors: requests that are equal but for the name. A *series*
// joins such tensors of one stage into one request (Request::as_series) with an additional first
// dim, which counts them and which no rank cuts. It has the same elements as the tensors, so a plan
// of the series is a plan of all of them, proved and timed in a fraction of the work. In memory
// each tensor remains a separate buffer: whether something is contiguous, or a box, is decided
// tensor by tensor. core/plan/written_out.h turns the plan of the series into that of the tensors.
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
  std::vector<std::vector<TensorId>> tensors;  // by request: tensors of the job, ascending
  Stages stages;                               // of the requests; empty: all at once
  std::size_t tensor_count() const;            // in the job
};

// Replaces every set of two or more tensors that can be joined with a series. Tensors that are
// folded, divided or made Partial remain single.
SeriesJob in_series(std::span<const Request> requests, const Stages& stages = {});

// A string of length `all` consists of the equally long strings of `tensors` tensors, one after
// another. Divides its range [lo, hi): calls visit(first, end, from, to, of), in order, either for
// tensors [first, end) as a whole or for the fraction from/of to to/of of one tensor.
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
