// SPDX-License-Identifier: BSD-3-Clause
// Draws the values of the tensors that a trace declares.
#include "sim/dispatch/values/values.h"

#include <algorithm>

#include "core/pattern/pattern.h"

namespace reshard::sim {
namespace {

bool is_any(const OperatorLine& line, ReduceOp op) {
  return std::any_of(line.spec.placements.begin(), line.spec.placements.end(),
                     [&](const OpPlacement& p) { return p.is_partial(op); });
}

// Odd multiples of 1/64, so that nothing is divided by zero; in a sum all addends but the first are
// even multiples, so that the sum is odd too. An index in addends is entirely in the first.
Array drawn(const OperatorLine& line, std::int64_t addend, std::int64_t addends) {
  const TensorMeta& meta = line.spec.meta;
  auto count = to_index(element_count(meta.shape));
  std::uint64_t salt = mix(to_index(line.out[0]) * 0x10001 + to_index(addend));
  if (is_real(meta.dtype)) {
    std::vector<double> out(count);
    bool sums = is_any(line, ReduceOp::Sum);
    int least = addend > 0 && (sums || is_any(line, ReduceOp::Avg)) ? 126 : 127;
    double share = sums ? static_cast<double>(addends) : 1.0;
    for (std::size_t i = 0; i < count; ++i)
      out[i] = line.value ? *line.value / share
                          : (static_cast<double>(mix(salt + i) % 128) * 2 - least) / 64;
    return Array::of(meta.dtype, meta.shape, out);
  }
  std::vector<std::int64_t> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = mix(salt + i);
    auto below =
        static_cast<std::uint64_t>(line.below.value_or(meta.dtype == DType::Bool ? 2 : 17));
    out[i] = static_cast<std::int64_t>(bits % below);
    if (!line.below && meta.dtype != DType::Bool && meta.dtype != DType::U8) out[i] -= 8;
    if (line.below && addend > 0 && is_any(line, ReduceOp::Sum)) out[i] = 0;
    if (line.value) out[i] = static_cast<std::int64_t>(*line.value);
  }
  return Array::of(meta.dtype, meta.shape, out);
}

std::int64_t addends_of(const TensorSpec& spec, const Mesh& mesh) {
  std::int64_t out = 1;
  for (std::size_t axis = 0; axis < spec.placements.size(); ++axis)
    if (spec.placements[axis].is_partial()) out *= mesh.shape()[axis];
  return out;
}

}  // namespace

Sharded declared(const OperatorLine& line) {
  std::int64_t addends = addends_of(line.spec, *line.mesh);
  return cut(line.spec, line.mesh,
             [&](std::int64_t addend) { return drawn(line, addend, addends); });
}

}  // namespace reshard::sim
