// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/torch_refusals.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/errors.h"

namespace reshard::sim {
namespace {

bool same_mesh(const Mesh& a, const Mesh& b) {
  return a == b &&
         std::equal(a.names().begin(), a.names().end(), b.names().begin(), b.names().end());
}

// As PyTorch prints it: "DeviceMesh((dp=2, tp=4))".
std::string mesh_text(const Mesh& mesh) {
  std::string out;
  for (int axis = 0; axis < mesh.axes(); ++axis) {
    std::string name = mesh.names().empty() ? "" : mesh.names()[axis] + "=";
    out += fmt::format("{}{}{}", axis == 0 ? "" : ", ", name, mesh.axis_size(axis));
  }
  return fmt::format("DeviceMesh(({}{}))", out,
                     mesh.axes() == 1 && mesh.names().empty() ? "," : "");
}

bool is_masked(const OpPlacement& placement) {
  return placement.kind == OpPlacement::Kind::MaskPartial;
}

// Axes on which a mask is added or removed; PyTorch does nothing along axes of one rank.
std::vector<int> axes_of(const DispatchedCall& call, const OpPlacements& with,
                         const OpPlacements& without) {
  std::vector<int> out;
  for (int axis = 0; axis < call.op_line->mesh->axes(); ++axis)
    if (is_masked(with[to_index(axis)]) && with[to_index(axis)] != without[to_index(axis)] &&
        call.op_line->mesh->axis_size(axis) > 1)
      out.push_back(axis);
  return out;
}

bool was_run(const OperatorLine& op_line) { return op_line.expect_in || op_line.expect_out; }

// Whether the argument is given by keyword.
bool is_keyword(const Operator& op, std::size_t argument) {
  if (argument >= op.tensors.size()) return true;
  std::string_view name = op.tensors[argument].name;
  return op.name.starts_with("_fused_adam") &&
         (name == "state_steps" || name == "lr" || name == "grad_scale" || name == "found_inf");
}

}  // namespace

TorchRefusals::TorchRefusals(const std::vector<std::shared_ptr<const OperatorLine>>& tensors) {
  std::map<double, std::int64_t> constants;
  for (const auto& line : tensors) {
    meshes_[line->out[0]] = line->mesh;
    if (!line->value) continue;
    std::int64_t number = -1 - static_cast<std::int64_t>(constants.size());
    content_[line->out[0]] = constants.try_emplace(*line->value, number).first->second;
  }
}

void TorchRefusals::check_same_mesh(const OperatorLine& op_line,
                                    const std::vector<ValueId>& values) const {
  MeshRef first;
  for (ValueId value : values) {
    if (value == kNoValue) continue;
    const MeshRef& mesh = meshes_.at(value);
    if (!first) first = mesh;
    if (mesh == first || same_mesh(*mesh, *first)) continue;
    std::string name = op_line.op().name;
    if (op_line.op().is_stack)
      throw InputError(
          fmt::format("all operands of {} must have the same mesh, found {} and {}; PyTorch treats "
                      "meshes with different names as different",
                      name, mesh_text(*first), mesh_text(*mesh)));
    throw InputError(
        fmt::format("PyTorch does not run {} on inputs with different meshes, found {} and {}: "
                    "meshes with different names are different",
                    name, mesh_text(*first), mesh_text(*mesh)));
  }
}

void TorchRefusals::check_meshes(const OperatorLine& op_line) const {
  if (op_line.kind != OperatorLine::Kind::Call) return;
  const Operator& op = op_line.op();
  std::size_t positions = 1;
  if (op.each && !op_line.in.empty()) positions = op_line.in[0].values.size();
  for (std::size_t position = 0; position < positions; ++position) {
    std::vector<ValueId> compared;
    for (std::size_t i = 0; i < op_line.in.size(); ++i) {
      const OperatorLine::Argument& argument = op_line.in[i];
      if (is_keyword(op, i)) continue;
      if (op.is_stack) {
        compared = argument.values;
      } else if (!argument.is_list && !argument.values.empty()) {
        compared.push_back(argument.values[0]);
      } else if (op.each && position < argument.values.size()) {
        compared.push_back(argument.values[position]);
      }
    }
    check_same_mesh(op_line, compared);
  }
}

std::int64_t TorchRefusals::same_content(ValueId value) const {
  auto known = content_.find(value);
  return known == content_.end() ? value : known->second;
}

// The key under which PyTorch caches a look-up's decision: layouts, and the number of arguments.
// Trailing arguments equal to their defaults do not count; their values do not matter.
std::string TorchRefusals::key_of(const DispatchedCall& call) const {
  const Operator& op = *call.op;
  const OpAttributes& attributes = call.op_line->attributes;
  std::string out = op.name;
  for (int axis = 0; axis < call.op_line->mesh->axes(); ++axis)
    out += fmt::format(" {}", call.op_line->mesh->axis_size(axis));
  out += fmt::format(" {}", mesh_text(*call.op_line->mesh));
  for (Rank rank : call.op_line->mesh->ranks()) out += fmt::format(",{}", to_int(rank));
  for (const auto& input : call.in)
    out += fmt::format(" {}", input ? text(*input) : std::string("-"));
  if (attributes.has("dim")) out += fmt::format(" dim {}", attributes.integer("dim"));
  int given = 0;
  if (attributes.integer("padding_idx", -1) != -1) given = 1;
  if (attributes.boolean("scale_grad_by_freq", false)) given = 2;
  if (attributes.boolean("sparse", false)) given = 3;
  return out + fmt::format(" {}", given);
}

std::size_t TorchRefusals::mask_of_call(const DispatchedCall& call) {
  auto [known, is_new] = by_key_.try_emplace(key_of(call), masks_.size());
  if (is_new) masks_.emplace_back();
  return known->second;
}

void TorchRefusals::look_up(const DispatchedCall& call, const DispatchedMove& move) {
  std::vector<int> axes = axes_of(call, move.to, move.from);
  if (axes.empty()) return;
  constexpr std::string_view kSays = "MaskBuffer has been materialized with conflicting data";
  if (axes.size() > 1 && !was_run(*call.op_line))
    throw InputError(
        fmt::format("{}: PyTorch raises \"{}\": two axes shard the dim of the look-up, but it "
                    "keeps a single mask for both",
                    call.op->name, kSays));
  Mask& mask = masks_[mask_of_call(call)];
  std::int64_t index = same_content(move.value);
  if (mask.holds > 0 && (mask.index != index || mask.axis != axes[0]) && !was_run(*call.op_line))
    throw InputError(fmt::format(
        "{}: PyTorch raises \"{}\": it keeps the mask with the decision, and the look-up in line "
        "{}, with the same layouts but other indices, is not reduced yet",
        call.op->name, kSays, mask.line));
  if (mask.holds == 0) mask = {0, call.line, 0, index, axes[0]};
  mask.holds += static_cast<std::int64_t>(axes.size());
}

void TorchRefusals::reduce(const DispatchedCall& call, const DispatchedMove& move) {
  auto pending = pending_.find(move.value);
  if (pending == pending_.end()) return;
  Mask& mask = masks_[pending->second];
  for (std::size_t i = 0; i < axes_of(call, move.from, move.to).size(); ++i) {
    if (mask.holds == 0 && !was_run(*call.op_line))
      throw InputError(
          fmt::format("{}: PyTorch raises AssertionError: the look-up in line {} was reduced in "
                      "line {}, which released its mask, and is reduced again",
                      call.op ? call.op->name : "redistribute", mask.line, mask.reduced_line));
    mask.holds = std::max<std::int64_t>(mask.holds - 1, 0);
    mask.reduced_line = call.line;
  }
}

void TorchRefusals::follow(const DispatchedCall& call) {
  const OperatorLine& op_line = *call.op_line;
  std::vector<ValueId> inputs = op_line.flat_in();
  std::optional<std::size_t> mask;
  for (const DispatchedMove& move : call.moves) {
    bool masks = std::any_of(move.to.begin(), move.to.end(), is_masked) && call.op;
    reduce(call, move);
    if (!masks) continue;
    look_up(call, move);
    mask = mask_of_call(call);
  }
  for (ValueId value : inputs)
    if (auto known = pending_.find(value); known != pending_.end() && !mask) mask = known->second;
  bool same =
      !call.op || call.op->name == "detach" || call.op->name == "alias" || call.op->name == "clone";
  for (std::size_t i = 0; i < op_line.out.size(); ++i) {
    if (op_line.out[i] == kNoValue) continue;
    meshes_[op_line.out[i]] = op_line.mesh;
    if (same) content_[op_line.out[i]] = same_content(inputs[0]);
    const auto& outputs = call.decision.outputs;
    bool pends =
        i < outputs.size() && outputs[i] &&
        std::any_of(outputs[i]->placements.begin(), outputs[i]->placements.end(), is_masked);
    if (pends && mask) pending_[op_line.out[i]] = *mask;
  }
}

}  // namespace reshard::sim
