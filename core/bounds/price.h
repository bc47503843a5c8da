// SPDX-License-Identifier: BSD-3-Clause
// The price bound: a receipt inside a set of a level (a node: over NVLink) costs 1, one between
// sets (over NICs) costs beta. Then every plan pays at least the sum of bytes x cost(beta) over all
// elements, and in a time T no plan can pay more than T x (capacity inside + beta x capacity
// between); a resource that both kinds of receipts cross has the greater of the two prices.
//
//   T >= least latency + sum of bytes x cost(beta) / (inside + beta x between)
//
// beta = 1 is the volume bound over ranks, beta -> infinity that over sets. Between them lies what
// neither sees: that bytes may avoid the dear way only by taking the cheap way more often.
//
// beta < 1. Let an element take at least R receipts in all (bounds.h). If one set holds all its
// owners and all who need it, then either no receipt is between sets: R at 1; or a rank of another
// set received it, which neither holds nor needs it, so that receipt is not among the R (these are
// at ranks that need it, or on the way by which k holders come together; a tree over the holders
// and one rank more has one edge more): R + 1, each at beta or more.
//
//   cost = min(R, (R+1) beta) for such elements, R beta for all others
//
// The sum is piecewise linear in beta and breaks at R/(R+1) for the R that occur, the capacity is
// linear, and a quotient of the two is greatest at a break. So these are tried.
//
// beta > 1 tells something new only of folds of k > 2 addends, which switches do not make on the
// way. R receipts in all, S of them between sets: cost >= R + (beta-1) S. And for each set with m
// needing ranks: if nothing enters it, the first of its ranks that comes by the value has folded k
// addends of k ranks by k-1 receipts inside, each further needing rank receives once more, later:
// k-1 + m-1; if something enters, m needing ranks receive and one receipt in the set costs beta:
// beta + m-1. At beta = k-1, the only break, both are the same, and receipts in different sets are
// different receipts:
//
//   cost >= sum over sets of (k-1) + (m-1)
//
// The greater of the two counts. Switches that multicast: shows_receipts() in capacity.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/integers.h"
#include "core/bounds/capacity.h"

namespace reshard {

// What a request's elements cost at a level; bytes are of one receipt.
struct PriceDemand {
  std::vector<Int128> alone_bytes;  // [R]: of elements that one set alone holds and needs
  Int128 other_receipts_bytes = 0;  // R x bytes of all others
  std::int64_t fold_price = 0;      // k-1; 0: no such beta
  Int128 fold_cost_bytes = 0;       // at beta = k-1
};

// What both cost together. Where they have different beta > 1, that of the dearer fold stays, at
// which the other pays 1 for each receipt at least.
void add(PriceDemand& sum, const PriceDemand& more);

// The greatest over all beta; 0 where none is worth a try.
std::int64_t price_bound_ps(const PriceDemand& demand, const LevelPassages& passages);

}  // namespace reshard
