// SPDX-License-Identifier: BSD-3-Clause
// The requests of a plan as tensors and buffers of a file for reshard check: so that what is
// exported can be judged by itself.
#include <set>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "sim/exports/exports.h"
#include "sim/report/json.h"

namespace reshard::sim {
namespace {

void add_line(std::string& out, const Json& line) { out += line.dump() + "\n"; }

void add_boxes(std::string& out, const Layout& layout, const std::string& side,
               const std::string& name) {
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position) {
    Json parts = Json::array();
    layout.for_each_part(position, [&](const Box& box, const DimVector& local_lo) {
      parts.push_back({{"tensor", name}, {"box", slices_text(box)}, {"at", text(local_lo)}});
    });
    if (parts.empty()) continue;
    add_line(out, {{"side", side},
                   {"buffer", name},
                   {"ranks", fmt::to_string(to_int(layout.mesh().rank_at(position)))},
                   {"shape", values_json(layout.local_shape(position))},
                   {"dtype", text(layout.dtype())},
                   {"parts", std::move(parts)}});
  }
}

void add_side(std::string& out, const Layout& layout, const std::string& side,
              const std::string& name) {
  if (!layout.is_product()) return add_boxes(out, layout, side, name);
  add_line(out, {{"side", side},
                 {"tensor", name},
                 {"mesh", shape_text(layout.mesh())},
                 {"ranks", ranks_text(layout.mesh().ranks())},
                 {"placements", layout.placements_text()}});
}

}  // namespace

std::string slices_text(const Box& box) {
  std::string out;
  for (int d = 0; d < box.dims(); ++d)
    out += fmt::format("{}{}:{}", d == 0 ? "" : ",", box.lo[d], box.hi[d]);
  return out;
}

std::string export_name(const Plan& plan, TensorId tensor) {
  const std::string& name = plan.request(tensor).name();
  return name.empty() ? fmt::format("tensor {}", to_index(tensor)) : name;
}

void require_own_names(const Plan& plan) {
  std::set<std::string> names;
  for_each_tensor(plan.tensors, [&](TensorId tensor, const Request&) {
    std::string name = export_name(plan, tensor);
    if (!names.insert(name).second)
      throw InputError(fmt::format("--emit: expected tensors of different names, found {} twice",
                                   Json(name).dump()));
  });
}

std::string check_head(const Plan& plan) {
  std::string out;
  require_own_names(plan);
  add_line(out, {{"reshard_check", 1}});
  for_each_tensor(plan.tensors, [&](TensorId tensor, const Request& request) {
    add_line(out, {{"tensor", export_name(plan, tensor)},
                   {"shape", values_json(request.shape())},
                   {"dtype", text(request.dtype())}});
  });
  for_each_tensor(plan.tensors, [&](TensorId tensor, const Request& request) {
    add_side(out, request.source(), "from", export_name(plan, tensor));
    add_side(out, request.destination(), "to", export_name(plan, tensor));
  });
  return out;
}

}  // namespace reshard::sim
