// SPDX-License-Identifier: BSD-3-Clause
// Jobs that can share a plan: the same tensors, laid out in the same way on other ranks.
//
// Two jobs are *alike* on a topology if their ranks, each in ascending order, correspond one to
// one, such that the requests are equal with each rank in place of the corresponding one,
// corresponding ranks are the same device of their nodes, and ranks of one node correspond to ranks
// of one node. All nodes of a topology are equal and every node reaches every other by the same
// rule, so the renaming is a symmetry of the machine, too; and it keeps the order of ranks, nodes
// and resources, by which ties are broken. So a plan of one job, with its ranks renamed, is a plan
// of the other, with the same slots, buffers, steps (core/plan/carried_over.h) and time.
#pragma once

#include <span>

#include "core/base/digest.h"
#include "core/layout/stages.h"
#include "core/topology/topology.h"

namespace reshard {

// Equal for jobs that are alike. Stages may be empty. Every rank must have a device.
Digest likeness_of(std::span<const Request> requests, const Stages& stages,
                   const Topology& topology);

// Adds a layout of explicit boxes except for the numbers of its ranks.
void add_boxes(Hasher& hasher, const Layout& layout);

}  // namespace reshard
