// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/slow_share.h"

#include <algorithm>

namespace reshard::test {

namespace {

bool crosses(const SlowFlow& flow, std::size_t resource) {
  return std::find(flow.path.begin(), flow.path.end(), static_cast<std::int32_t>(resource)) !=
         flow.path.end();
}

Fraction lowest(Int128 top, Int128 bottom) {
  Int128 a = top, b = bottom;
  while (b != 0) {
    Int128 rest = a % b;
    a = b;
    b = rest;
  }
  return {top / a, bottom / a};
}

bool less(const Fraction& a, const Fraction& b) { return a.top * b.bottom < b.top * a.bottom; }

}  // namespace

// Looks at everything in every round: caps first, then resources by id, strictly smaller shares
// only.
std::vector<std::int64_t> slow_integer_rates(const std::vector<std::int64_t>& capacities,
                                             const std::vector<SlowFlow>& flows,
                                             const std::vector<bool>& alive) {
  std::vector<std::int64_t> rates(flows.size(), 0);
  for (;;) {
    std::int64_t best = -1;
    std::vector<std::size_t> chosen;
    auto consider = [&](std::int64_t share, const std::vector<std::size_t>& whom) {
      if (whom.empty() || (best >= 0 && share >= best)) return;
      best = share;
      chosen = whom;
    };
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (alive[f] && rates[f] == 0) consider(flows[f].cap, {f});
    for (std::size_t r = 0; r < capacities.size(); ++r) {
      std::int64_t rest = capacities[r];
      std::vector<std::size_t> free;
      for (std::size_t f = 0; f < flows.size(); ++f) {
        if (!alive[f] || !crosses(flows[f], r)) continue;
        rest -= rates[f];
        if (rates[f] == 0) free.push_back(f);
      }
      if (!free.empty()) consider(rest / static_cast<std::int64_t>(free.size()), free);
    }
    if (chosen.empty()) return rates;
    for (std::size_t f : chosen) rates[f] = best;
  }
}

std::vector<Fraction> exact_rates(const std::vector<std::int64_t>& capacities,
                                  const std::vector<SlowFlow>& flows) {
  std::vector<Fraction> rates(flows.size());
  for (;;) {
    bool found = false;
    Fraction best;
    std::vector<std::size_t> chosen;
    auto consider = [&](const Fraction& share, const std::vector<std::size_t>& whom) {
      if (whom.empty() || (found && !less(share, best))) return;
      found = true;
      best = share;
      chosen = whom;
    };
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (rates[f].top == 0) consider({flows[f].cap, 1}, {f});
    for (std::size_t r = 0; r < capacities.size(); ++r) {
      Fraction rest{capacities[r], 1};
      std::vector<std::size_t> free;
      for (std::size_t f = 0; f < flows.size(); ++f) {
        if (!crosses(flows[f], r)) continue;
        rest = lowest(rest.top * rates[f].bottom - rates[f].top * rest.bottom,
                      rest.bottom * rates[f].bottom);
        if (rates[f].top == 0) free.push_back(f);
      }
      if (!free.empty())
        consider(lowest(rest.top, rest.bottom * static_cast<Int128>(free.size())), free);
    }
    if (!found) return rates;
    for (std::size_t f : chosen) rates[f] = best;
  }
}

}  // namespace reshard::test
