// SPDX-License-Identifier: BSD-3-Clause
// Estimated duration of an unmeasured call on a rank: the longer of the times for its products and
// for its bytes at the rates of the GPU (a roofline; Williams, Waterman, Patterson, 2009). A lower
// bound, for kernels that reach these rates.
#pragma once

#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/integers.h"
#include "core/topology/gpu_figures.h"
#include "sim/dispatch/dispatched.h"

namespace reshard::sim {

// Whether it only reinterprets its input: a view, `t`, `detach`, a slice.
bool is_free_of_work(const Operator& op);

// The work of the rank that has most.
struct Work {
  Int128 operations = 0;   // of products: two for each multiplication with its addition
  std::int64_t bytes = 0;  // read and written
};
// A look-up reads only the rows that it returns.
Work work_of(const DispatchedCall& call);

// `dtype`: that of the factors.
std::int64_t estimated_ps(const Work& work, DType dtype, const GpuFigures& gpu);

}  // namespace reshard::sim
