// SPDX-License-Identifier: BSD-3-Clause
// Which requests are forbidden, as a list of rules.
#include <set>

#include "tests/sweep/sweep_run.h"

namespace reshard::test {
namespace {

bool is_float(DType dtype) {
  return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}
bool is_f8(DType dtype) { return dtype == DType::F8E4M3 || dtype == DType::F8E5M2; }

bool has_op(ReduceOp op, DType dtype) {
  if (is_f8(dtype)) return false;
  if (op == ReduceOp::Sum || op == ReduceOp::Product) return dtype != DType::Bool;
  if (op == ReduceOp::Avg) return is_float(dtype) || dtype == DType::C64;
  if (op == ReduceOp::Min || op == ReduceOp::Max) return dtype != DType::C64;
  return !is_float(dtype) && dtype != DType::C64;
}

// From one value everywhere to addends of it.
bool can_be_made(ReduceOp op, DType dtype) {
  if (op == ReduceOp::Sum) return is_float(dtype) || dtype == DType::C64;
  return op == ReduceOp::Avg || op == ReduceOp::Min || op == ReduceOp::Max;
}

// Operators of one side, avg counted as sum.
std::set<ReduceOp> ops_of(const Layout& layout) {
  std::set<ReduceOp> out;
  for (const Placement& placement : layout.placements())
    if (placement.is_partial())
      out.insert(placement.op == ReduceOp::Avg ? ReduceOp::Sum : placement.op);
  return out;
}

bool forbidden_on_axis(const Placement& from, const Placement& to, DType dtype) {
  if (!to.is_partial()) return false;
  if (from.is_shard_like())
    return from.kind == Placement::Kind::StridedShard || to.op != ReduceOp::Sum;
  if (from.is_partial()) return from.op != to.op;
  return !can_be_made(to.op, dtype);
}

bool lacks_elements(const Layout& source, const Layout& destination) {
  std::set<std::int64_t> held;
  for (std::int32_t p = 0; p < source.mesh().size(); ++p)
    for (std::int64_t element : held_elements(source, p)) held.insert(element);
  for (std::int32_t p = 0; p < destination.mesh().size(); ++p)
    for (std::int64_t element : held_elements(destination, p))
      if (element >= 0 && !held.contains(element)) return true;
  return false;
}

}  // namespace

bool is_forbidden(const Layout& source, const Layout& destination) {
  DType dtype = source.dtype();
  bool product = source.is_product() && destination.is_product();
  if (!product && lacks_elements(source, destination)) return true;
  for (const Layout* layout : {&source, &destination}) {
    for (const Placement& placement : layout->placements())
      if (placement.is_partial() && !has_op(placement.op, dtype)) return true;
    if (ops_of(*layout).size() > 1) return true;
  }
  bool same_shape = product && source.mesh().shape() == destination.mesh().shape(),
       multiplies = false, divides = false;
  for (int axis = 0; axis < source.mesh().axes(); ++axis) {
    Placement from = placement_of(source, axis);
    bool kept = same_shape && destination.placement(axis).is_partial();
    multiplies |= from.is_partial() && from.op == ReduceOp::Product && !kept &&
                  source.mesh().axis_size(axis) > 1;
  }
  for (int axis = 0; axis < destination.mesh().axes(); ++axis) {
    if (destination.mesh().axis_size(axis) == 1) continue;
    Placement to = placement_of(destination, axis);
    divides |= to.is_partial() && to.op == ReduceOp::Sum &&
               !(same_shape && !source.placement(axis).is_replicate());
    if (forbidden_on_axis(same_shape ? source.placement(axis) : Placement::replicate(), to, dtype))
      return true;
  }
  return multiplies && divides;
}

}  // namespace reshard::test
