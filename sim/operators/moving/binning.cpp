// SPDX-License-Identifier: BSD-3-Clause
// The bin of each value, and histograms.
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/operators/operator_row.h"

namespace reshard::sim {
namespace {

// The number of boundaries below each value or, with "right", not above it. For all boundaries this
// is the value's bin; for a shard of them it is the shard's contribution. NaN is above all.
ArrayResults bucketize(const LocalCall& call) {
  const Array &in = call.tensor(0), &bounds = call.tensor(1);
  bool right = call.attributes.boolean("right", false);
  std::vector<double> x = values<double>(in), sorted = values<double>(bounds);
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> out;
  for (double value : x) {
    auto at = std::isnan(value) ? sorted.end()
              : right           ? std::upper_bound(sorted.begin(), sorted.end(), value)
                                : std::lower_bound(sorted.begin(), sorted.end(), value);
    out.push_back(at - sorted.begin());
  }
  DType dtype = call.attributes.boolean("out_int32", false) ? DType::I32 : DType::I64;
  return results(Array::of(dtype, in.shape, std::move(out)));
}

// Bins of equal width from min to max; the last one includes max. If min and max are equal, takes
// the range of the values. Integers, which GPUs accept, are binned without rounding.
ArrayResults histc(const LocalCall& call) {
  const Array& in = call.tensor(0);
  std::int64_t bins = call.attributes.integer("bins", 100);
  call.expect(bins > 0 && bins <= (1 << 24), "expected 1 to 2^24 bins");
  double low = call.number("min", 0), high = call.number("max", 0);
  std::vector<double> x = values<double>(in), out(to_index(bins), 0);
  if (low == high && !x.empty()) {
    auto [least, most] = std::minmax_element(x.begin(), x.end());
    low = *least, high = *most;
  }
  if (low == high) low -= 1, high += 1;
  call.expect(low < high && std::isfinite(high - low), "expected a finite min below a finite max");
  for (double value : x) {
    if (!(value >= low && value <= high)) continue;
    auto count = static_cast<double>(bins);
    auto bin = static_cast<std::int64_t>(is_real(in.dtype) ? (value - low) / (high - low) * count
                                                           : (value - low) * count / (high - low));
    out[to_index(std::min(bin, bins - 1))] += 1;
  }
  return results(Array::of(in.dtype, Shape{bins}, out));
}

constexpr std::array kBinningRows{
    OperatorRow{"bucketize", bucketize},
    OperatorRow{"histc", histc},
};

}  // namespace

std::span<const OperatorRow> binning_rows() { return kBinningRows; }

}  // namespace reshard::sim
