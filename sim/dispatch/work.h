// SPDX-License-Identifier: BSD-3-Clause
// How long a call takes on a rank, where nobody has measured it: the longer of what its products
// take and what its bytes take at the rates of the GPU (a roofline; Williams, Waterman, Patterson,
// 2009). A least time, of kernels that reach them.
#pragma once

#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/integers.h"
#include "core/topology/gpu_figures.h"
#include "sim/dispatch/dispatched.h"

namespace reshard::sim {

// Whether it only says otherwise what is there: a view, `t`, `detach`, a slice.
bool is_free_of_work(const Operator& op);

// Of the rank that has most.
struct Work {
  Int128 operations = 0;   // of products: two for each multiplication with its sum
  std::int64_t bytes = 0;  // read and written
};
// A look-up reads the rows that it gives back.
Work work_of(const DispatchedCall& call);

// `dtype`: of what is multiplied.
std::int64_t estimated_ps(const Work& work, DType dtype, const GpuFigures& gpu);

}  // namespace reshard::sim
