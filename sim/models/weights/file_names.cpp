// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/weights/file_names.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/stored/view.h"
#include "sim/models/report/pipeline_stages.h"

namespace reshard::sim {
namespace {

// "..experts.{}.gate_proj.weight" and 17, for "..experts.17.gate_proj.weight".
std::optional<std::pair<std::string, std::int64_t>> without_expert(std::string_view name) {
  constexpr std::string_view kExperts = "experts.";
  std::size_t at = name.find(kExperts);
  if (at == std::string_view::npos) return std::nullopt;
  at += kExperts.size();
  std::size_t end = std::min(name.find('.', at), name.size());
  std::int64_t number = -1;
  auto [rest, error] = std::from_chars(name.data() + at, name.data() + end, number);
  if (error != std::errc{} || rest != name.data() + end || number < 0) return std::nullopt;
  return std::pair{fmt::format("{}{{}}{}", name.substr(0, at), name.substr(end)), number};
}

// Whether gate and up rows alternate in the projection, or its matrices are transposed.
bool is_transposed(const ModelParameter& parameter) { return !parameter.extras.order.empty(); }

bool is_passed_over(std::string_view name, const Model& model) {
  if (model.is_tied && name == "lm_head.weight") return true;
  const std::int64_t layer = layer_in(name), layers = std::ssize(model.layers);
  return (layer >= layers && layer < layers + model.more_layers) ||
         name.ends_with("rotary_emb.inv_freq");
}

// One for each block of a matrix.
Shape scales_of(Shape shape, const std::array<std::int64_t, 2>& block) {
  for (int d : {0, 1}) {
    std::int64_t& extent = shape[shape.size() - 2 + d];
    extent = (extent + block[static_cast<std::size_t>(d)] - 1) / block[static_cast<std::size_t>(d)];
  }
  return shape;
}

}  // namespace

FileNames::FileNames(const Model& model) : model_(model) {
  for (ExpertForm form : {ExpertForm::InMemory, ExpertForm::InFiles})
    for (ModelParameter& each : parameters_of(model, form)) {
      std::string name = each.name;
      parameters_.insert_or_assign(std::move(name), std::move(each));
    }
}

std::optional<FileNames::Known> FileNames::find(std::string_view name) const {
  if (auto found = parameters_.find(name);
      found != parameters_.end() && found->second.extras.each.empty())
    return Known{&found->second, -1};
  auto [pattern, number] =
      without_expert(name).value_or(std::pair<std::string, std::int64_t>{"", -1});
  auto found = parameters_.find(pattern);
  if (number < 0 || number >= model_.experts || found == parameters_.end()) return std::nullopt;
  return Known{&found->second, number};
}

std::optional<FileNames::Known> FileNames::find_scaled(std::string_view scales) const {
  const std::string suffix = scale_name("");
  if (!model_.scale_block || !scales.ends_with(suffix)) return std::nullopt;
  std::optional<Known> out = find(scales.substr(0, scales.size() - suffix.size()));
  if (out && !has_scales(*out->parameter->weight)) return std::nullopt;
  return out;
}

std::vector<FileNames::Block> FileNames::blocks_of(const ModelParameter& parameter) const {
  std::vector<Block> out;
  std::int64_t begin = 0;
  const bool in_turn = parameter.joined == Joined::InTurn;
  for (const Weight* weight : parameter.weights) {
    out.push_back({weight, begin, in_turn ? std::ssize(parameter.weights) : 1});
    begin += in_turn ? 1 : weight->shape[parameter.extras.dim];
  }
  return out;
}

Shape FileNames::shape_of(const Known& known) const {
  const ModelParameter& parameter = *known.parameter;
  Shape out = parameter.weight->shape;
  out[parameter.extras.dim] = 0;
  for (const Block& block : blocks_of(parameter))
    out[parameter.extras.dim] += block.weight->shape[parameter.extras.dim];
  if (known.expert >= 0) out = without_first(out);
  if (is_transposed(parameter) && out.size() == 3) std::swap(out[1], out[2]);
  return out;
}

std::vector<WeightPart> FileNames::parts_of(const Known& known, const Box& box) const {
  const ModelParameter& parameter = *known.parameter;
  const bool is_one = known.expert >= 0, swapped = is_transposed(parameter);
  const DimVector own = row_major(box.extents());
  std::vector<WeightPart> out;
  for (const Block& block : blocks_of(parameter)) {
    WeightPart part{block.weight, box_of(block.weight->shape), 0,
                    DimVector(block.weight->shape.size())};
    bool is_empty = false;
    for (int d = 0; d < part.box.dims(); ++d) {
      if (is_one && d == 0) {
        part.box.lo[0] = known.expert;
        part.box.hi[0] = known.expert + 1;
        continue;
      }
      int at = is_one ? d - 1 : d;
      if (swapped && d > 0) at = 3 - at;
      const std::int64_t begin = d == parameter.extras.dim ? block.begin : 0,
                         step = d == parameter.extras.dim ? block.step : 1;
      part.box.lo[d] = std::max<std::int64_t>(0, (box.lo[at] - begin + step - 1) / step);
      if (box.lo[at] < begin) part.box.lo[d] = 0;
      part.box.hi[d] = std::min(part.box.hi[d], (box.hi[at] - begin + step - 1) / step);
      is_empty = is_empty || box.hi[at] <= begin || part.box.lo[d] >= part.box.hi[d];
      part.offset += (begin + step * part.box.lo[d] - box.lo[at]) * own[at];
      part.strides[d] = step * own[at];
    }
    if (!is_empty) out.push_back(std::move(part));
  }
  return out;
}

void check_file(const Model& model, const std::vector<FileTensor>& tensors,
                const std::string& place) {
  FileNames names(model);
  std::map<const Weight*, std::int64_t> elements;
  auto check_shape = [&](const FileTensor& tensor, const Shape& shape) {
    if (tensor.shape && *tensor.shape != shape)
      throw InputError(fmt::format("{}: {}: expected [{}], as {} says, found [{}]", place,
                                   tensor.name, text(shape), model.file, text(*tensor.shape)));
  };
  for (const FileTensor& tensor : tensors) {
    if (is_passed_over(tensor.name, model)) continue;
    if (std::optional<FileNames::Known> scaled = names.find_scaled(tensor.name)) {
      check_shape(tensor, scales_of(names.shape_of(*scaled), *model.scale_block));
      continue;
    }
    std::optional<FileNames::Known> known = names.find(tensor.name);
    if (!known)
      throw InputError(
          fmt::format("{}: expected the weights of {}, found {}; --roles-file says what it is for",
                      place, model.family, quoted(tensor.name, 120)));
    const Shape shape = names.shape_of(*known);
    check_shape(tensor, shape);
    for (const WeightPart& part : names.parts_of(*known, box_of(shape)))
      elements[part.weight] += element_count(part.box.extents());
  }
  model.for_each([&](const Weight& weight) {
    if (model.is_tied && weight.role == Role::Head) return;
    if (elements[&weight] != element_count(weight.shape))
      throw InputError(fmt::format("{}: expected all of {}, found {} of {} elements", place,
                                   weight.name, elements[&weight], element_count(weight.shape)));
  });
}

}  // namespace reshard::sim
