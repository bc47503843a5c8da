// SPDX-License-Identifier: BSD-3-Clause
// The price bound: a receipt inside a set of a level (a node: over NVLink) costs 1, one between
// sets (over NICs) costs beta. Every plan then pays at least the sum of bytes x cost(beta) over all
// elements, and in a time T no plan can pay more than T x (capacity inside + beta x capacity
// between); a resource that both kinds of receipts cross has the greater of the two prices.
//
//   T >= least latency + sum of bytes x cost(beta) / (inside + beta x between)
//
// beta = 1 is the volume bound over ranks, beta -> infinity that over sets. In between, the bound
// shows what neither sees: bytes can avoid the expensive routes only by taking the cheap ones more
// often.
//
// beta < 1. Let an element take at least R receipts in all (bounds.h). If one set contains all its
// owners and all ranks that need it, then either no receipt is between sets: R at price 1; or a
// rank of another set received it. That rank neither holds nor needs it, so its receipt is not
// among the R (those are at ranks that need it, or on the tree that brings k holders together; a
// tree over the holders and one more rank has one more edge): R + 1 receipts, each at beta or more.
//
//   cost = min(R, (R+1) beta) for such elements, R beta for all others
//
// The sum is piecewise linear in beta, with breaks at R/(R+1) for the R that occur; the capacity is
// linear; and their quotient is greatest at a break. So only the breaks are tried.
//
// beta > 1 adds something only for folds of k > 2 addends that are not made by switches. If S of R
// receipts in all are between sets, then cost >= R + (beta-1) S. And for each set with m
// needing ranks: if nothing enters it, the first of its ranks to obtain the value has folded k
// addends of k ranks by k-1 receipts inside the set, and each further needing rank receives once
// more, later: k-1 + m-1. If something enters, m needing ranks receive, and one receipt of the set
// costs beta: beta + m-1. At beta = k-1, the only break, the two are equal, and receipts in
// different sets are different receipts:
//
//   cost >= sum over sets of (k-1) + (m-1)
//
// The greater of the two counts. For switches that multicast see shows_receipts() in capacity.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/integers.h"
#include "core/bounds/capacity.h"

namespace reshard {

// The cost of a request's elements at one level.
struct PriceDemand {
  std::vector<Int128> alone_bytes;  // [R]: bytes (not times R) held and needed in one set only
  Int128 other_receipts_bytes = 0;  // R x bytes of all other elements
  std::int64_t fold_price = 0;      // k-1; 0: no beta above 1
  Int128 fold_cost_bytes = 0;       // cost at beta = k-1
};

// Adds the cost of `more` to `sum`. If their beta > 1 differ, that of the more expensive fold
// stays; the other request then pays at least 1 per receipt.
void add(PriceDemand& sum, const PriceDemand& more);

// The greatest bound over all beta; 0 if none is worth trying.
std::int64_t price_bound_ps(const PriceDemand& demand, const LevelPassages& passages);

}  // namespace reshard
