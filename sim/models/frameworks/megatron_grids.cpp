// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/frameworks/megatron_grids.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard::sim {
namespace {

using enum MegatronGrids::Axis;
using Axis = MegatronGrids::Axis;
using Grid = MegatronGrids::Grid;
constexpr std::size_t kAxisCount = MegatronGrids::kAxisCount;

constexpr std::array<std::string_view, kAxisCount> kAxisNames = {"tp", "cp", "ep", "dp", "pp"};

void set_strides(Grid& grid, std::string_view order, Parallelism& options) {
  std::int64_t stride = 1;
  std::array<bool, kAxisCount> seen{};
  for (std::size_t at = 0; at <= order.size();) {
    std::size_t end = std::min(order.find('-', at), order.size());
    std::string_view word = order.substr(at, end - at);
    std::size_t axis = 0;
    while (axis < kAxisCount && kAxisNames[axis] != word) ++axis;
    if (axis == kAxisCount || seen[axis])
      options.fail("order", "tp, cp, ep, dp and pp, each once, such as tp-cp-ep-dp-pp");
    seen[axis] = true;
    grid[axis].stride = stride;
    stride *= grid[axis].size;
    at = end + 1;
  }
  for (std::size_t axis = 0; axis < kAxisCount; ++axis)
    if (!seen[axis] && grid[axis].size > 1)
      options.fail("order", "tp, cp, ep, dp and pp, such as tp-cp-ep-dp-pp");
}

}  // namespace

std::int64_t MegatronGrids::rank(const Grid& grid, const std::array<std::int64_t, 3>& at,
                                 std::int64_t stage, const std::array<Axis, 3>& axes) {
  std::int64_t out = stage * grid[Pp].stride;
  for (std::size_t i = 0; i < at.size(); ++i) out += at[i] * grid[axes[i]].stride;
  return out;
}

std::int64_t MegatronGrids::ranks() const {
  return dense[Tp].size * dense[Cp].size * dense[Dp].size * dense[Pp].size;
}

MegatronGrids megatron_grids(const Model& model, Parallelism& options) {
  MegatronGrids out{};
  auto number = [&](Grid& grid, Axis axis, std::string_view key, std::int64_t absent) {
    grid[axis].size = options.number(key, absent);
  };
  number(out.dense, Tp, "tp", 1);
  number(out.dense, Cp, "cp", 1);
  number(out.dense, Dp, "dp", 1);
  number(out.dense, Pp, "pp", 1);
  number(out.expert, Tp, "etp", out.dense[Tp].size);
  number(out.expert, Ep, "ep", 1);
  out.expert[Pp].size = out.dense[Pp].size;
  std::int64_t stage = out.dense[Tp].size;
  for (Axis axis : {Cp, Dp}) stage = std::min(stage * out.dense[axis].size, std::int64_t{1} << 40);
  if (stage * out.dense[Pp].size > std::int64_t{1} << 20)
    throw InputError(
        fmt::format("{}: expected at most 2^20 ranks (tp x cp x dp x pp)", options.field()));
  if (model.experts == 0) {
    if (options.has("ep") && out.expert[Ep].size > 1) options.fail("ep", "a model with experts");
    if (options.has("etp")) options.fail("etp", "a model with experts");
  }
  const std::int64_t share = out.expert[Tp].size * out.expert[Ep].size;
  if (stage % share != 0)
    throw InputError(fmt::format(
        "{}: expected etp x ep to divide the {} ranks of a stage (tp x cp x dp), found {}",
        options.field(), stage, share));
  out.expert[Dp].size = stage / share;
  std::string order = options.word("order", "tp-cp-ep-dp-pp");
  set_strides(out.dense, order, options);
  set_strides(out.expert, order, options);
  // Megatron has the grid of experts for dense models, too.
  if (out.dense[Pp].size > 1 && !order.ends_with("pp") &&
      (out.expert[Dp].size != out.dense[Dp].size || out.dense[Pp].stride != out.expert[Pp].stride))
    options.fail("order",
                 "pp last, as Megatron does unless dense layers and experts have as many "
                 "data-parallel ranks, and the same stages");
  return out;
}

}  // namespace reshard::sim
