// SPDX-License-Identifier: BSD-3-Clause
#include "sim/operators/operator_row.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/ops/attributes.h"
#include "core/ops/metas.h"

namespace reshard::sim {

void LocalCall::refuse(const std::string& what) const {
  throw InputError(fmt::format("{}: {}", name, what));
}

const Array* LocalCall::optional_tensor(std::size_t position) const {
  if (position >= arguments.size()) return nullptr;
  const ArrayArgument& argument = arguments[position];
  if (argument.is_list || argument.arrays.size() > 1)
    refuse(fmt::format("expected a tensor as input {}, found a list", position));
  return argument.arrays.empty() ? nullptr : argument.arrays[0];
}

const Array& LocalCall::tensor(std::size_t position) const {
  const Array* found = optional_tensor(position);
  if (!found) refuse(fmt::format("expected a tensor as input {}, found none", position));
  return *found;
}

const std::vector<const Array*>& LocalCall::list(std::size_t position) const {
  if (position >= arguments.size())
    refuse(fmt::format("expected a list of tensors as input {}, found none", position));
  return arguments[position].arrays;
}

const std::vector<const Array*>& LocalCall::full_list(std::size_t position) const {
  const auto& arrays = list(position);
  if (arrays.empty() || std::find(arrays.begin(), arrays.end(), nullptr) != arrays.end())
    refuse(fmt::format("expected a list of tensors as input {}, none of them null", position));
  return arrays;
}

int LocalCall::dim_of(std::int64_t dim, int rank) const { return dim_in_range(dim, rank, "dim"); }

int LocalCall::dim(std::string_view attribute, std::int64_t absent, int rank) const {
  return dim_in_range(attributes.integer(attribute, absent), rank, attribute);
}

DType LocalCall::dtype_or(DType absent) const { return reshard::dtype_or(attributes, absent); }

double LocalCall::number(std::string_view attribute, double absent) const {
  return attributes.number(attribute, absent);
}

}  // namespace reshard::sim
