// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/values/own_call.h"

#include "core/base/errors.h"
#include "core/ops/decompositions/steps.h"
#include "core/ops/views/view_map.h"
#include "sim/operators/rearranged.h"

namespace reshard::sim {

namespace {

// Number of elements that a gradient's mean is over.
std::optional<std::int64_t> whole_count(const DispatchedCall& call) {
  bool is_backward = call.op->name.find("_backward") != std::string::npos;
  if (!is_backward || call.in.size() < 2 || !call.in[1]) return std::nullopt;
  return element_count(call.in[1]->meta.shape);
}

}  // namespace

OwnCall own_call(const DispatchedCall& call, const std::vector<std::optional<Layout>>& outputs,
                 std::int32_t position) {
  OwnCall out{call.op->name, call.op_line->attributes};
  if (call.op->is_view) {
    ViewMap map = view_map(call.op->name, call.in[0]->meta, call.op_line->attributes);
    LocalView local = local_view(map, outputs[0]->local_shape(position));
    return {local.name, local.attributes};
  }
  // Each rank computes its part of the whole's mean.
  if (is_decomposed(*call.op))
    if (std::optional<std::int64_t> count = whole_count(call))
      out.attributes.set(std::string(kWholeCount), OpValue(*count));
  for (const char* size : {"size", "input_sizes"})
    if (out.attributes.has(size) && !outputs.empty() && outputs[0]) {
      Shape local = outputs[0]->local_shape(position);
      out.attributes.set(size, OpValue(std::vector<std::int64_t>(local.begin(), local.end())));
    }
  return out;
}

OwnHeads::OwnHeads(const DispatchedCall& call, const std::vector<std::optional<Sharded>>& inputs,
                   std::int32_t position) {
  if (!call.op->rule || !call.op->rule->name.starts_with("attention")) return;
  is_backward_ = call.op->rule->name == "attention_backward";
  const std::size_t query = is_backward_ ? 1 : 0;
  const Layout queries = layout_of(inputs[query]->spec, inputs[query]->mesh);
  const int query_dim = heads_dim(queries.shape());
  for (std::size_t key : {query + 1, query + 2}) {
    const Layout keys = layout_of(inputs[key]->spec, inputs[key]->mesh);
    const int dim = heads_dim(keys.shape());
    if (query_dim < 0 || dim < 0 || keys.shape()[dim] < 2) continue;
    const std::int64_t group = queries.shape()[query_dim] / keys.shape()[dim];
    const Runs among = keys.runs(dim, position);
    if (group < 2) continue;
    std::optional<KeyHeads> heads =
        heads_asked_for(queries.runs(query_dim, position), among, group);
    RESHARD_CHECK(heads.has_value(), "a group of heads is split");
    if (heads->count != size_of(among)) parts_.push_back({key, dim, *heads, size_of(among)});
  }
}

void OwnHeads::narrow(std::vector<const Array*>& arguments) {
  for (const NarrowedInput& part : parts_) {
    const Array*& argument = arguments[part.input];
    narrowed_.push_back(narrowed(*argument, part.dim, part.heads.first, part.heads.count));
    argument = &narrowed_.back();
  }
}

void OwnHeads::widen(ArrayResults& results) const {
  for (const NarrowedInput& part : parts_) {
    if (!is_backward_) break;
    std::optional<Array>& gradient = results[part.input - 1];
    if (!gradient) continue;
    Shape shape = gradient->shape;
    shape[part.dim] = part.all;
    Array whole = Array::zeros(gradient->dtype, shape);
    const DimVector strides = dense_strides(shape);
    write_view(whole, *gradient, strides, part.heads.first * strides[part.dim]);
    gradient = std::move(whole);
  }
}

}  // namespace reshard::sim
