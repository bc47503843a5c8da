// SPDX-License-Identifier: BSD-3-Clause
#include "core/bounds/price.h"

#include <algorithm>

namespace reshard {
namespace {

// The bound at beta = p / q, with both sides multiplied by q; the choice of hops with the least
// capacity decides.
std::int64_t bound_at(Int128 cost_times_q, Int128 p, Int128 q, const LevelPassages& passages) {
  std::int64_t bound = 0;
  for (const SharedCapacity& hops : passages.choices) {
    Int128 capacity = hops.inside * q + hops.between * p + hops.both * std::max(p, q);
    bound = std::max(bound, Passage{capacity, passages.latency_ps}.least_ps(cost_times_q));
  }
  return bound;
}

Int128 receipts_bytes(const PriceDemand& demand) {
  Int128 sum = demand.other_receipts_bytes;
  for (std::size_t r = 1; r < demand.alone_bytes.size(); ++r)
    sum += demand.alone_bytes[r] * static_cast<std::int64_t>(r);
  return sum;
}

// The cost at a beta above 1.
Int128 fold_cost_bytes(const PriceDemand& demand, std::int64_t beta) {
  return beta == demand.fold_price ? demand.fold_cost_bytes : receipts_bytes(demand);
}

}  // namespace

void add(PriceDemand& sum, const PriceDemand& more) {
  std::int64_t beta = sum.fold_cost_bytes < more.fold_cost_bytes ? more.fold_price : sum.fold_price;
  sum.fold_cost_bytes = fold_cost_bytes(sum, beta) + fold_cost_bytes(more, beta);
  sum.fold_price = beta;
  if (sum.alone_bytes.size() < more.alone_bytes.size())
    sum.alone_bytes.resize(more.alone_bytes.size());
  for (std::size_t r = 0; r < more.alone_bytes.size(); ++r)
    sum.alone_bytes[r] += more.alone_bytes[r];
  sum.other_receipts_bytes += more.other_receipts_bytes;
}

std::int64_t price_bound_ps(const PriceDemand& demand, const LevelPassages& passages) {
  // At beta = R/(R+1), elements of R or fewer receipts pay 1 for each; those of more pay beta for
  // each and for one more.
  Int128 paid_one = 0, paid_beta = demand.other_receipts_bytes;
  for (std::size_t r = 1; r < demand.alone_bytes.size(); ++r)
    paid_beta += demand.alone_bytes[r] * static_cast<std::int64_t>(r + 1);
  std::int64_t bound = 0;
  for (std::size_t r = 1; r < demand.alone_bytes.size(); ++r) {
    if (demand.alone_bytes[r] == 0) continue;
    auto receipts = static_cast<std::int64_t>(r);
    paid_one += demand.alone_bytes[r] * receipts;
    paid_beta -= demand.alone_bytes[r] * (receipts + 1);
    bound = std::max(bound, bound_at(paid_one * (receipts + 1) + paid_beta * receipts, receipts,
                                     receipts + 1, passages));
  }
  if (demand.fold_price > 1)
    bound = std::max(bound, bound_at(demand.fold_cost_bytes, demand.fold_price, 1, passages));
  return bound;
}

}  // namespace reshard
