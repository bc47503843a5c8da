// SPDX-License-Identifier: BSD-3-Clause
// Pointwise operators with broadcasting: all tensors that have a dim of the output are cut along it
// in the same way. Which partials pass through depends on each operator's algebra.
#include <algorithm>
#include <map>

#include "core/base/errors.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"
#include "core/ops/torch_fault.h"

namespace reshard {
namespace {

constexpr Mark kR = {}, kSum = {Mark::Kind::Partial, 0, ReduceOp::Sum},
               kAvg = {Mark::Kind::Partial, 0, ReduceOp::Avg},
               kMin = {Mark::Kind::Partial, 0, ReduceOp::Min},
               kMax = {Mark::Kind::Partial, 0, ReduceOp::Max};

// Rows of partials by their name in the catalogue: output, then inputs. Rows for a different number
// of tensors do not apply to a call: mul of a tensor and a number uses those with one input.
const Rows& partial_rows(std::string_view name) {
  static const Rows none;
  static const std::map<std::string_view, Rows> named{
      // avg, max and min also take a replica; a sum would add it once per rank
      {"additive",
       {{kSum, kSum, kSum},
        {kAvg, kAvg, kAvg},
        {kAvg, kAvg, kR},
        {kMax, kMax, kR},
        {kMin, kMin, kR},
        {kAvg, kR, kAvg}}},
      {"mul",
       {{kSum, kSum},
        {kAvg, kAvg},
        {kSum, kSum, kR},
        {kAvg, kAvg, kR},
        {kSum, kR, kSum},
        {kAvg, kR, kAvg}}},
      {"div", {{kSum, kSum}, {kAvg, kAvg}, {kSum, kSum, kR}, {kAvg, kAvg, kR}}},
      {"linear", {{kSum, kSum}, {kAvg, kAvg}}},
      {"rising", {{kMax, kMax}, {kMin, kMin}}},
      {"falling", {{kMin, kMax}, {kMax, kMin}}},
      {"neg", {{kSum, kSum}, {kAvg, kAvg}, {kMin, kMax}, {kMax, kMin}}},
      {"any", {{kSum, kSum}, {kAvg, kAvg}, {kMax, kMax}, {kMin, kMin}}},
      {"copy", {{kSum, kSum, kSum}, {kAvg, kAvg, kAvg}, {kMax, kMax, kMax}, {kMin, kMin, kMin}}},
      {"sums", {{kSum, kSum, kSum}, {kAvg, kAvg, kAvg}}},
      {"besselk", {{kMax, kMin}}},  // decreasing where it is defined, above 0
      {"div2", {{kSum, kSum, kR}, {kAvg, kAvg, kR}}},
      {"monotone", {{kMax, kMax, kR}, {kMax, kR, kMax}, {kMin, kMin, kR}, {kMin, kR, kMin}}},
      {"largest",
       {{kMax, kMax, kR},
        {kMax, kR, kMax},
        {kMin, kMin, kR},
        {kMin, kR, kMin},
        {kMax, kMax, kMax}}},
      {"smallest",
       {{kMax, kMax, kR},
        {kMax, kR, kMax},
        {kMin, kMin, kR},
        {kMin, kR, kMin},
        {kMin, kMin, kMin}}}};
  auto at = named.find(name);
  RESHARD_CHECK(name.empty() || at != named.end(), "no Partial of that name");
  return name.empty() ? none : at->second;
}

// Whether the operator's partials hold for these arguments too.
bool keeps_partials(const OpSite& site) {
  std::string_view name = site.op.name;
  // x > t ? x : v is monotone only if v <= t (PyTorch assumes it always is).
  if (name.starts_with("threshold") && !name.starts_with("threshold_backward"))
    return site.attributes.number("value") <= site.attributes.number("threshold");
  // Rounded quotients do not add up.
  return !site.attributes.has("rounding_mode");
}

Rows pointwise_rows(const OpSite& site, bool partials) {
  std::vector<const TensorMeta*> inputs = site.inputs();
  Shape common = broadcast_shapes(inputs);
  std::size_t outputs = site.outputs.size();
  Rows rows;
  for (int dim = 0; dim < common.size(); ++dim) {
    Row row(outputs, Mark::shard(dim));
    for (const TensorMeta* input : inputs) {
      int at = broadcast_dim(common, input->shape, dim);
      row.push_back(at >= 0 ? Mark::shard(at) : Mark::replicate());
    }
    rows.push_back(std::move(row));
  }
  if (partials)
    for (const Row& row : partial_rows(site.op.partials))
      if (row.size() == outputs + inputs.size()) rows.push_back(row);
  return rows;
}

Rows pointwise(const OpSite& site) { return pointwise_rows(site, keeps_partials(site)); }
Rows threshold_rows_of_torch(const OpSite& site) { return pointwise_rows(site, true); }

std::string_view threshold_fault(const TorchChoice& choice) {
  if (!choice.differs()) return {};
  return "PyTorch 2.15 is silently wrong here: it treats threshold as monotone, which it is not if "
         "value is above threshold";
}

// Scalars that can take part in type promotion.
constexpr std::string_view kScalars[]{"other", "self",  "exponent", "min",
                                      "max",   "value", "scalar",   "alpha"};

DType pointwise_dtype(const OpSite& site, const std::vector<const TensorMeta*>& inputs) {
  if (site.op.dtype == "bool") return DType::Bool;
  if (site.op.dtype == "complex") return DType::C64;
  std::vector<const OpValue*> values;
  bool fills = site.op.name.starts_with("masked_fill") || site.op.name.starts_with("threshold");
  for (std::string_view name : kScalars) {
    const OpValue* value = site.attributes.find(name);
    // alpha and value only scale tensors, and a fill value does not change the dtype.
    bool counts = name != "alpha" && name != "value" && !fills;
    if (value && counts) values.push_back(value);
  }
  // Conditions and masks are not operands.
  std::vector<const TensorMeta*> operands = inputs;
  if (site.op.name.starts_with("where")) operands.erase(operands.begin());
  if (site.op.name.starts_with("masked_fill")) operands.resize(1);
  DType dtype = promote(operands, values);
  if (site.op.name.starts_with("float_power")) return dtype == DType::C64 ? dtype : DType::F64;
  // Magnitudes and angles of complex numbers are real.
  bool measures = site.op.name.starts_with("abs") || site.op.name.starts_with("angle");
  if (dtype == DType::C64 && measures && !site.op.in_place) return DType::F32;
  std::string mode = site.attributes.text("rounding_mode", "");
  return site.op.dtype == "float" && mode.empty() ? as_floating(dtype) : dtype;
}

Metas pointwise_metas(const OpSite& site) {
  std::vector<const TensorMeta*> inputs = site.inputs();
  if (inputs.empty()) (void)site.meta(0);
  Shape shape = broadcast_shapes(inputs);
  if (site.op.in_place) {
    if (shape != site.shape(0)) throw InputError("in place: the result has a different shape");
    return like_first(site);
  }
  return {TensorMeta{shape, pointwise_dtype(site, inputs)}};
}

// Outputs: a mantissa and an exponent.
Metas frexp_metas(const OpSite& site) {
  const TensorMeta& input = site.meta(0);
  return {input, TensorMeta{input.shape, DType::I32}};
}

// The first tensor, the parameter, decides the shapes. Updates are in place; there are no outputs.
Metas optimizer_metas(const OpSite&) { return {}; }

Rows optimizer(const OpSite& site) {
  std::vector<const TensorMeta*> inputs = site.inputs();
  Rows rows;
  for (int dim = 0; dim < site.shape(0).size(); ++dim) {
    Row row;
    for (const TensorMeta* input : inputs) {
      int at = broadcast_dim(site.shape(0), input->shape, dim);
      row.push_back(at >= 0 ? Mark::shard(at) : Mark::replicate());
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

constexpr std::string_view kReads = "other: self: exponent: min: max: scalar: rounding_mode";

constexpr Rule kPointwiseRules[]{
    {"pointwise", pointwise, pointwise_metas, kReads, true},
    // Operators that PyTorch decomposes before it decides.
    {"pointwise_even", pointwise, pointwise_metas, kReads, false},
    {"threshold", pointwise, pointwise_metas, "threshold value", true, nullptr,
     threshold_rows_of_torch, nullptr, threshold_fault},
    {"frexp", pointwise, frexp_metas, "", true},
    {"optimizer", optimizer, optimizer_metas, "", true},
};

}  // namespace

std::span<const Rule> pointwise_rules() { return kPointwiseRules; }

}  // namespace reshard
