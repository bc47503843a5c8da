// SPDX-License-Identifier: BSD-3-Clause
// Text forms of shapes, boxes and layouts. (Those of meshes are in mesh_text.cpp, of placements in
// placement.cpp.)
#include <algorithm>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/layout/layout.h"
#include "core/layout/mesh.h"
#include "core/layout/sharding_text/sharding_text.h"

namespace reshard {

std::string text(const DimVector& values) {
  std::string out;
  for (int d = 0; d < values.size(); ++d) out += fmt::format("{}{}", d == 0 ? "" : ",", values[d]);
  return out;
}

DimVector index_at(std::int64_t index, const Shape& shape) {
  DimVector at(shape.size());
  for (int d = shape.size() - 1; d >= 0; --d) {
    at[d] = index % shape[d];
    index /= shape[d];
  }
  return at;
}

std::string text(const Box& box) {
  std::string out = "[";
  for (int d = 0; d < box.dims(); ++d)
    out += fmt::format("{}{}:{}", d == 0 ? "" : ",", box.lo[d], box.hi[d]);
  return out + "]";
}

namespace {

// The placements in a printed DTensor or spec; otherwise the whole text: "DTensor(local_tensor=..,
// device_mesh=.., placements=(Shard(dim=0),))", "placements=[Shard(0)]", "Spec(f32[8, 8](S(0)R))".
std::string_view placements_in(std::string_view text) {
  constexpr std::string_view kField = "placements=";
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  bool whole = text.starts_with("DTensor(");
  if (whole || text.starts_with(kField)) {
    std::size_t field = text.rfind(kField);
    if (field == std::string_view::npos) return text;
    text.remove_prefix(field + kField.size());
    if (whole && text.ends_with(')')) text.remove_suffix(1);
    if (text.ends_with(',')) text.remove_suffix(1);
    return text;
  }
  std::size_t begin = text.find("](");
  bool spec = text.starts_with("Spec(") && begin != std::string_view::npos && text.ends_with("))");
  return spec ? text.substr(begin + 2, text.size() - begin - 4) : text;
}

}  // namespace

Layout parse_layout(std::string_view shape_text, std::string_view dtype, MeshRef mesh,
                    std::string_view placements, std::string_view field) {
  Shape shape = parse_shape(shape_text);
  if (is_boxes_text(placements)) {
    ExplicitBoxes boxes = parse_boxes(placements, shape, *mesh, field);
    return Layout(shape, parse_dtype(dtype), std::move(mesh), std::move(boxes));
  }
  placements = placements_in(placements);
  std::optional<PlacementList> list = parse_sharding(placements, *mesh, shape, field);
  if (!list) list = parse_placements(placements, mesh->axes(), shape.size(), field);
  return Layout(shape, parse_dtype(dtype), std::move(mesh), std::move(list->placements),
                list->order);
}

}  // namespace reshard
