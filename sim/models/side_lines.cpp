// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/side_lines.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/layout/mesh.h"
#include "sim/report/json.h"

namespace reshard::sim {
namespace {

std::string json_texts(const std::vector<std::string>& texts) {
  return list_json(texts, [](const std::string& text) { return text; }).dump();
}

}  // namespace

MeshLines mesh_lines(const std::vector<MeshAxis>& axes, const std::vector<Rank>& ranks) {
  MeshLines out;
  for (const MeshAxis& axis : axes)
    out.mesh += fmt::format("{}{}={}", out.mesh.empty() ? "" : ",", axis.name, axis.size);
  out.ranks = ranks_text(ranks);
  return out;
}

// "q:4 k:1 v:1 x128".
void SideLines::note_tensors(std::string_view block) {
  while (!block.empty()) {
    std::string_view word = block.substr(0, block.find(' '));
    block.remove_prefix(std::min(block.size(), word.size() + 1));
    held_.emplace(word.substr(0, word.rfind(':')));
  }
}

void SideLines::line(std::string_view side, std::string_view name, const MeshLines& mesh,
                     const std::vector<std::string>& blocks, std::string_view placements,
                     const BufferExtras& extras) {
  for (const std::string& block : blocks) note_tensors(block);
  std::string out = fmt::format(R"({{"side": "{}", "buffer": {}, "mesh": "{}", "ranks": "{}")",
                                side, json_text(name), mesh.mesh, mesh.ranks);
  out += blocks.size() == 1 ? fmt::format(R"(, "tensor": {})", json_text(blocks.front()))
                            : fmt::format(R"(, "fused": {})", json_texts(blocks));
  if (extras.dim != 0) out += fmt::format(R"(, "dim": {})", extras.dim);
  if (!placements.empty()) out += fmt::format(R"(, "placements": "{}")", placements);
  if (!extras.map.empty()) out += fmt::format(R"(, "map": {})", extras.map);
  if (!extras.order.empty()) out += fmt::format(R"(, "order": {})", extras.order);
  if (!extras.each.empty()) out += fmt::format(R"(, "each": "{}")", extras.each);
  if (!extras.dtype.empty())
    out += fmt::format(R"(, "dtype": "{}", "convert": true)", extras.dtype);
  lines_ += out + "}\n";
}

void SideLines::buffer(std::string_view name, const MeshLines& mesh,
                       const std::vector<std::string>& blocks, const Weight& weight,
                       std::string_view placements, const BufferExtras& extras) {
  line(side_, name, mesh, blocks, placements, extras);
  if (!has_scales_ || !sim::has_scales(weight)) return;
  if (!extras.each.empty())  // whole, so that the scales lie as the weights do
    return line(side_, scale_name(name), mesh, {scale_name(blocks.front())}, placements, extras);
  auto at = std::lower_bound(scaled_.begin(), scaled_.end(), name);
  if (at != scaled_.end() && *at == name) return;
  scaled_.insert(at, std::string(name));
  scales_ += fmt::format(R"({{"side": "{}", "buffer": {}, "scales_of": {}}})", side_,
                         json_text(scale_name(name)), json_text(name)) +
             "\n";
}

void SideLines::named(std::string_view name, const MeshLines& mesh,
                      const std::vector<std::string>& blocks, const BufferExtras& extras,
                      std::string_view placements) {
  line("named", fmt::format("{}:{}", side_, name), mesh, blocks, placements, extras);
}

void SideLines::flat_of(std::string_view name, const std::vector<std::string>& buffers,
                        const std::vector<std::string>& axes, std::int64_t align, std::int64_t pad,
                        std::string_view dtype) {
  // Both sides can have a buffer of this name.
  Json of = list_json(
      buffers, [&](const std::string& buffer) { return fmt::format("{}:{}", side_, buffer); });
  lines_ += fmt::format(
      R"({{"side": "{}", "buffer": {}, "flat_of": {}, "axis": {}, "align": {}, "pad": {})", side_,
      json_text(name), of.dump(), json_texts(axes), align, pad);
  if (!dtype.empty()) lines_ += fmt::format(R"(, "dtype": "{}", "convert": true)", dtype);
  lines_ += "}\n";
}

std::string scale_name(std::string_view weight) { return fmt::format("{}_scale_inv", weight); }

std::string tensor_lines(const Model& model, bool scales) {
  std::string out;
  model.for_each([&](const Weight& weight) {
    if (weight.role == Role::Head && model.is_tied) {
      out += fmt::format(R"({{"tensor": {}, "alias_of": {}}})", json_text(weight.name),
                         json_text(model.embedding.weights.front().name)) +
             "\n";
      return;
    }
    out += fmt::format(R"({{"tensor": {}, "shape": [{}], "dtype": "{}"}})", json_text(weight.name),
                       text(weight.shape), text(weight.dtype)) +
           "\n";
    if (!scales || !sim::has_scales(weight)) return;
    out += fmt::format(R"({{"tensor": {}, "scales": {}, "block": [{}{}, {}], "dtype": "f32"}})",
                       json_text(scale_name(weight.name)), json_text(weight.name),
                       weight.shape.size() == 3 ? "1, " : "", (*model.scale_block)[0],
                       (*model.scale_block)[1]) +
           "\n";
  });
  return out;
}

}  // namespace reshard::sim
