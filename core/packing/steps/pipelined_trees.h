// SPDX-License-Identifier: BSD-3-Clause
// Turns packed trees into a plan's steps.
//
// Every commodity is a string of items, of one tensor or many. It is cut into a slice for each
// tree, and every slice into chunks that follow each other through the tree; where a cut falls into
// an item, slices are cut along its longest dim and chunks along its second longest. Data that a
// rank forwards but does not need waits in a temporary; data that it needs is forwarded from its
// destination.
//
// Hops that start at holders over one kind of route form a stage, hops that continue from there
// over another form the next, and so on. Hops to ranks that forward nothing form separate stages:
// no other rank waits for them. Folds and the hops towards their roots are staged by height above
// the first senders.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/packing/packing.h"
#include "core/plan/plan.h"

namespace reshard {

struct Chunking {
  std::vector<std::int32_t> weights{1};  // relative sizes of the chunks, in order
  int window = 2;                        // chunks in flight at a time
  bool waves = false;                    // for machines that run steps one after the other
  bool all_paced = false;                // all hops, so that fewer messages are packed at a time
  bool coupled = false;                  // no paced hops get far ahead of others
  // In waves: the last hops of trees that carry less than others, within nodes, take several chunks
  // at once. That makes fewer messages, and does not unbalance the links between nodes.
  bool joins_small = false;
};

// The first chunks are small, so that the others start soon; the last are small, so that little is
// left to wait for.
Chunking equal_but_at_the_ends(std::int32_t chunks);

// Adds the steps to a plan of the job's tensors, and gives `say` the reason for each.
void emit_trees(Plan& plan, const Commodities& commodities, const Symmetry& symmetry,
                const RankRoutes& routes, const Packing& packing, const Chunking& chunking,
                const std::function<void(StepId, std::string)>& say);

}  // namespace reshard
