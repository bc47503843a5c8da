// SPDX-License-Identifier: BSD-3-Clause
#include "sim/operators/pointwise/foreach.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/errors.h"

namespace reshard::sim {
namespace {

// The name of `scalar` and `scalars` in the plain operator.
std::string_view scalar_name(const OperatorRow& row) {
  std::string_view base = row.name.substr(0, row.name.find('.'));
  if (base == "pow" || base == "float_power") return "exponent";
  if (base == "addcmul" || base == "addcdiv") return "value";
  if (base == "lerp") return "weight";
  if (base == "clamp_min") return "min";
  if (base == "clamp_max") return "max";
  return "other";
}

bool is_products(std::string_view name) { return name == "addcmul" || name == "addcdiv"; }

// The attributes of one position. `scalars`: the tensor of scalars of addcmul and addcdiv, or null.
OpAttributes attributes_at(const LocalCall& call, const Array* scalars, std::size_t position,
                           std::size_t count) {
  OpAttributes out = call.attributes;
  std::string name(scalar_name(*call.row));
  for (const char* given : {"scalar", "scalars", name.c_str()}) {
    const OpValue* found = call.attributes.find(given);
    if (!found || found->is_null()) continue;
    OpValue value = *found;
    if (value.kind == OpValue::Kind::List) {
      if (value.list.size() != count)
        call.refuse(
            fmt::format("expected {} scalars, one a tensor, found {}", count, value.list.size()));
      value = OpValue(found->list[position]);
    }
    out.erase(given);
    out.set(name, std::move(value));
  }
  if (scalars) out.set(name, OpValue(values<double>(*scalars).at(position)));
  return out;
}

}  // namespace

std::string_view foreach_base(std::string_view name) {
  bool in_place = name.ends_with("_");
  std::string_view base = in_place ? name.substr(0, name.size() - 1) : name;
  if (base == "norm") return "linalg_vector_norm";
  if (base == "powsum") return "linalg__powsum";
  if (base == "clamp_min") return in_place ? "maximum_" : "maximum";
  if (base == "clamp_max") return in_place ? "minimum_" : "minimum";
  return name;
}

ArrayResults for_each_position(const LocalCall& call,
                               const std::function<ArrayResults(const LocalCall&)>& run) {
  call.expect(!call.arguments.empty(), "expected lists of tensors, found no input");
  const std::vector<const Array*>* first = nullptr;
  for (const ArrayArgument& argument : call.arguments)
    if (argument.is_list && !first) first = &argument.arrays;
  call.expect(first, "expected a list of tensors among its inputs, found none");
  std::size_t count = first->size();
  // A single tensor after the lists of addcmul or addcdiv holds the scalars.
  std::span<const ArrayArgument> arguments = call.arguments;
  const Array* scalars = nullptr;
  if (is_products(call.row->name) && arguments.size() == 4) {
    scalars =
        call.tensor(3).count() == static_cast<std::int64_t>(count) ? &call.tensor(3) : nullptr;
    call.expect(scalars, "expected as many scalars as tensors in the list");
    arguments = arguments.first(3);
  }
  ArrayResults out;
  std::vector<ArrayArgument> one(arguments.size());
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t a = 0; a < arguments.size(); ++a) {
      const ArrayArgument& argument = arguments[a];
      call.expect(!argument.is_list || argument.arrays.size() == count,
                  "expected lists of equal lengths");
      one[a] = argument.is_list ? ArrayArgument{false, {argument.arrays[i]}} : argument;
    }
    OpAttributes attributes = attributes_at(call, scalars, i, count);
    for (auto& made : run({call.name, one, attributes, call.random, call.row}))
      out.push_back(std::move(made));
  }
  return out;
}

}  // namespace reshard::sim
