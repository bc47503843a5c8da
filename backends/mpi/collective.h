// SPDX-License-Identifier: BSD-3-Clause
// The two ways of a collective: MPI's own, and messages between all pairs with folds in the order
// that the plan declares.
#pragma once

#include <memory>

#include "backends/mpi/parts.h"

namespace reshard::backends::mpi {

// Whether MPI's own reduction gives the bits that the plan means.
bool mpi_may_fold(const CollectiveStep& step, DType dtype);
// Whether MPI's own is taken. All members of all groups decide alike.
bool taken_by_mpi(const Plan& plan, const CollectiveStep& step, const WorldOptions& options);

std::unique_ptr<Part> make_mpi_collective(const PartContext& context, const CollectiveStep& step,
                                          Group group);
std::unique_ptr<Part> make_pairwise_collective(const PartContext& context,
                                               const CollectiveStep& step, const Group& group);

}  // namespace reshard::backends::mpi
