// SPDX-License-Identifier: BSD-3-Clause
// How near values must come, and how much work they are.
#include <algorithm>

#include "sim/dispatch/values.h"
#include "sim/dispatch/work.h"

namespace reshard::sim {
namespace {

double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 0x1p-52;
    case DType::F32:
      return 0x1p-23;
    case DType::F16:
      return 0x1p-10;
    case DType::BF16:
      return 0x1p-7;
    case DType::F8E4M3:
      return 0x1p-3;
    case DType::F8E5M2:
      return 0x1p-2;
    default:
      return 0;
  }
}

}  // namespace

double coarsest_epsilon(const DispatchedCall& call, DType dtype) {
  double out = epsilon_of(dtype);
  if (out == 0) return out;
  for (const auto& input : call.in)
    if (input) out = std::max(out, epsilon_of(input->meta.dtype));
  return out;
}

std::int64_t values_effort(const DispatchReport& report) {
  // Values become doubles and are compared one by one: a byte takes as long as many products.
  constexpr Int128 kOfByte = 16;
  Int128 out = 0;
  for (const DispatchedCall& call : report.calls) {
    if (!call.op) continue;
    Work work = work_of(call);
    // On every rank, and once more as a whole.
    out += (work.operations + kOfByte * work.bytes) * 2 * call.said->mesh->size();
  }
  return static_cast<std::int64_t>(std::min<Int128>(out, kMaxBytes));
}

}  // namespace reshard::sim
