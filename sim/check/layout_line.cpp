// SPDX-License-Identifier: BSD-3-Clause
#include "sim/check/layout_line.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/layout/box_text.h"
#include "core/layout/layout.h"
#include "core/stored/generators.h"
#include "sim/check/index_map_field.h"
#include "sim/inputs/json_reader.h"

namespace reshard::sim {
namespace {

constexpr std::string_view kBuffersAxis =
    "an axis of the buffers' mesh such as \"dp\", or a list of them";
constexpr std::string_view kDType = "a dtype such as \"bf16\"";

std::vector<std::string> names_in(TraceFields& fields, std::string_view key,
                                  std::string_view what) {
  const TraceJson& value = fields.required(key, what);
  if (!value.is_array() || value.empty()) fields.fail(key, what, value);
  std::vector<std::string> out;
  for (const TraceJson& entry : value) {
    if (!entry.is_string()) fields.fail(key, what, entry);
    out.push_back(entry.get<std::string>());
  }
  return out;
}

class BufferLine {
 public:
  BufferLine(TraceFields& fields, Stored& to, const Stored& named)
      : fields_(fields), to_(to), named_(named) {}

  void read() {
    if (fields_.has("scales_of"))
      read_scales();
    else if (fields_.has("flat_of"))
      read_shared_flat();
    else if (fields_.has("parts"))
      read_parts();
    else if (fields_.has("flat"))
      read_flat();
    else
      read_fused();
  }

 private:
  const ModelTensors& tensors() const { return to_.tensors(); }
  std::string name() { return fields_.string("buffer", "the name of a buffer"); }

  MeshRef mesh() {
    std::string ranks = fields_.has("ranks") ? ranks_text(fields_.ranks("ranks")) : "";
    return std::make_shared<const Mesh>(
        parse_mesh(fields_.string("mesh", "a mesh such as \"dp=2,tp=4\""), ranks, "mesh"));
  }

  void read_parts() {
    const std::string named = name();
    StoredBuffer buffer{Rank{0},
                        named,
                        parse_shape(fields_.shape("shape"), "shape"),
                        parse_dtype(fields_.string("dtype", kDType), "dtype"),
                        {},
                        fields_.boolean("convert", false)};
    constexpr std::string_view kWhat =
        "a list of parts such as {\"tensor\": \"w\", \"box\": \"0:4,:\", \"at\": \"0,0\"}";
    const TraceJson& list = fields_.required("parts", kWhat);
    if (!list.is_array()) fields_.fail("parts", kWhat, list);
    for (const TraceJson& json : list) {
      if (!json.is_object()) fields_.fail("parts", kWhat, json);
      buffer.parts.push_back(part(json, buffer));
    }
    for (Rank rank : fields_.ranks("ranks")) {
      buffer.rank = rank;
      to_.add(buffer);
    }
  }

  StoredPart part(const TraceJson& json, const StoredBuffer& buffer) {
    std::string place = "parts";
    TraceFields fields(json, place);
    StoredPart out{};
    out.tensor = tensors().at(fields.string("tensor", "the name of a tensor"), "tensor");
    const Shape& shape = tensors()[out.tensor].shape;
    auto box = fields.optional_string("box", "a box such as \"0:4,:\"");
    out.box = box ? parse_box(*box, shape, "box") : box_of(shape);
    if (const TraceJson* strides = fields.find("strides")) {
      out.strides = read_integers(fields, "strides", *strides);
      if (out.strides.size() != shape.size()) fields.fail("strides", "one for each dim", *strides);
      out.offset = fields.integer("offset", 0, kMaxBytes);
    } else if (fields.has("offset") || buffer.shape.size() != shape.size()) {
      out.offset = fields.integer("offset", 0, kMaxBytes, 0);
      out.strides = row_major(out.box.extents());
    } else {
      auto at = fields.optional_string("at", "an index in the buffer such as \"0,0\"");
      DimVector lo = at ? parse_shape(*at, "at") : DimVector(shape.size(), 0);
      if (lo.size() != shape.size())
        throw InputError(fmt::format("at: expected {} indices, found {}", shape.size(), lo.size()));
      for (int d = 0; d < lo.size(); ++d)
        if (lo[d] > buffer.shape[d] - out.box.extent(d))
          throw InputError(fmt::format("at: expected a place for {} in [{}], found {}",
                                       text(out.box), text(buffer.shape), text(lo)));
      StridedView view = view_of(box_at(lo, out.box.extents()), buffer.shape);
      out.offset = view.offset;
      out.strides = view.strides;
    }
    fields.refuse_others("a part");
    return out;
  }

  // The dtype of the buffer, if the ranks convert.
  std::optional<DType> converted() {
    if (!fields_.boolean("convert", false)) {
      if (const TraceJson* dtype = fields_.find("dtype"))
        fields_.fail("dtype", "\"convert\": true next to it", *dtype);
      return std::nullopt;
    }
    return parse_dtype(fields_.string("dtype", kDType), "dtype");
  }

  void read_scales() {
    ScalesBuffer buffer{name(), fields_.string("scales_of", "the name of an earlier buffer"),
                        fields_.boolean("shared", false)};
    add_scales(to_, buffer);
  }

  void read_flat() {
    FlatBuffer buffer{name(), mesh(), {}};
    for (const std::string& tensor :
         names_in(fields_, "flat", "a list of tensors such as [\"w1\", \"w2\"]"))
      buffer.tensors.push_back(tensors().at(tensor, "flat"));
    read_flat_padding(buffer);
    add_flat(to_, buffer);
  }

  // A single tensor counts as one block.
  void read_fused() {
    FusedBuffer buffer;
    std::string first;
    if (fields_.has("fused")) {
      for (const std::string& block :
           names_in(fields_, "fused", "a list of blocks such as [\"q_proj\", \"k_proj\"]")) {
        if (first.empty()) first = block;
        buffer.blocks.push_back(parse_fused_block(block, tensors(), "fused"));
      }
    } else {
      // Either a name as it is, which may contain spaces and ':', or a block such as "lm_head
      // pad64".
      first = fields_.string("tensor", "the name of a tensor");
      if (tensors().find(first) != nullptr)
        buffer.blocks = {{{{tensors().at(first, "tensor"), 1}}}};
      else
        buffer.blocks = {parse_fused_block(first, tensors(), "tensor")};
    }
    buffer.name = fields_.has("buffer") ? name() : first;
    int dims = tensors()[buffer.blocks.front().sections.front().tensor].shape.size();
    buffer.mesh = mesh();
    buffer.placements =
        parse_placements(fields_.optional_string("placements", "placements such as \"S(0)R\"")
                             .value_or(std::string(2 * to_index(buffer.mesh->axes()), 'R')
                                           .substr(0, to_index(buffer.mesh->axes()))),
                         buffer.mesh->axes(), dims, "placements");
    buffer.dim = static_cast<int>(fields_.integer("dim", 0, kMaxDims - 1, 0));
    if (const TraceJson* order = fields_.find("order")) read_order(*order, dims, buffer);
    buffer.stack = fields_.integer("stack", 1, kMaxBytes, 0);
    buffer.each = each();
    if (const TraceJson* map = fields_.find("map"))
      buffer.indices = read_index_map(fields_, *map, *buffer.mesh);
    if (const TraceJson* pad = fields_.find("pad")) read_pad(*pad, buffer);
    buffer.dtype = converted();
    add_fused(to_, buffer);
  }

  FusedBuffer::Each each() {
    constexpr std::string_view kWhat = "\"local\" or \"global\"";
    auto word = fields_.optional_string("each", kWhat);
    if (!word) return FusedBuffer::Each::None;
    if (*word == "local") return FusedBuffer::Each::Local;
    if (*word != "global")
      throw InputError(fmt::format("each: expected {}, found {}", kWhat, reshard::quoted(*word)));
    return FusedBuffer::Each::Global;
  }

  // The field refers to buffers of this side, or to those of the side "named".
  void read_shared_flat() {
    SharedFlatBuffer buffer{name(), names_in(fields_, "flat_of", "a list of earlier buffers"), {}};
    const TraceJson* axis = fields_.find("axis");
    if (axis != nullptr && axis->is_array())
      buffer.axes = names_in(fields_, "axis", kBuffersAxis);
    else
      buffer.axes = {fields_.string("axis", kBuffersAxis)};
    read_flat_padding(buffer);
    bool is_named = std::any_of(buffer.buffers.begin(), buffer.buffers.end(),
                                [&](const std::string& of) { return named_.find_any(of); });
    add_shared_flat(to_, is_named ? named_ : to_, buffer);
  }

  template <class Flat>
  void read_flat_padding(Flat& buffer) {
    buffer.align = fields_.integer("align", 1, kMaxBytes / 4, 1);
    buffer.pad = fields_.integer("pad", 1, kMaxBytes / 4, 1);
    buffer.dtype = converted();
  }

  void read_pad(const TraceJson& value, FusedBuffer& buffer) {
    constexpr std::int64_t kMostPad = std::int64_t{1} << 20;
    constexpr std::string_view kWhat =
        "\"alike\", or multiples from 1 to 2^20 such as [128, 1], one for each dim";
    if (value.is_string() && value.get<std::string>() == "alike") {
      buffer.pad_alike = true;
      return;
    }
    if (!value.is_array()) fields_.fail("pad", kWhat, value);
    buffer.pad = read_integers(fields_, "pad", value);
    for (std::int64_t multiple : buffer.pad)
      if (multiple < 1 || multiple > kMostPad) fields_.fail("pad", kWhat, value);
  }

  void read_order(const TraceJson& value, int dims, FusedBuffer& buffer) {
    DimVector order = read_integers(fields_, "order", value);
    std::vector<bool> seen(to_index(dims), false);
    for (std::int64_t d : order) {
      if (order.size() != dims || d >= dims || seen[to_index(d)])
        fields_.fail("order", fmt::format("each of the dims 0 to {} once", dims - 1), value);
      seen[to_index(d)] = true;
      buffer.order.push_back(static_cast<int>(d));
    }
  }

  TraceFields& fields_;
  Stored& to_;
  const Stored& named_;
};

void read_scales_of(TraceFields& fields, std::string name, ModelTensors& tensors) {
  ScalesOf scales{tensors.at(fields.string("scales", "the name of a tensor"), "scales"), {}};
  constexpr std::string_view kWhat = "a list of extents such as [128, 128]";
  scales.block = read_integers(fields, "block", fields.required("block", kWhat));
  tensors.add_scales(std::move(name), scales, parse_dtype(fields.string("dtype", kDType), "dtype"));
}

}  // namespace

void read_tensor(TraceFields& fields, ModelTensors& tensors) {
  std::string name = fields.string("tensor", "the name of a tensor");
  if (auto other = fields.optional_string("alias_of", "the name of a tensor"))
    tensors.add_alias(std::move(name), *other);
  else if (fields.has("scales"))
    read_scales_of(fields, std::move(name), tensors);
  else
    tensors.add(std::move(name), parse_shape(fields.shape("shape"), "shape"),
                parse_dtype(fields.string("dtype", kDType), "dtype"));
  fields.refuse_others("a tensor");
}

void read_buffer(TraceFields& fields, Stored& source, Stored& destination, Stored& named) {
  constexpr std::string_view kSides = "\"from\", \"to\", \"both\" or \"named\"";
  std::string side = fields.string("side", kSides);
  if (side != "from" && side != "to" && side != "both" && side != "named")
    throw InputError(fmt::format("side: expected {}, found {}", kSides, reshard::quoted(side)));
  if (side == "from" || side == "both") BufferLine(fields, source, named).read();
  if (side == "to" || side == "both") BufferLine(fields, destination, named).read();
  if (side == "named") BufferLine(fields, named, named).read();
  fields.refuse_others("a buffer");
}

Box parse_box(std::string_view text, const Shape& shape, std::string_view field) {
  Cursor cursor(text, field);
  cursor.skip_spaces();
  bool bracket = cursor.accept("[");
  Box out = read_box(cursor, shape);
  if (bracket) cursor.expect("]");
  cursor.skip_spaces();
  cursor.expect_end();
  return out;
}

DimVector read_integers(const TraceFields& fields, std::string_view key, const TraceJson& value) {
  constexpr std::string_view kWhat = "a list of at most 8 integers from 0";
  if (!value.is_array() || value.size() > kMaxDims) fields.fail(key, kWhat, value);
  DimVector out;
  for (const TraceJson& entry : value) {
    auto number = integer_in(entry, 0, kMaxBytes);
    if (!number) fields.fail(key, kWhat, entry);
    out.push_back(*number);
  }
  return out;
}

}  // namespace reshard::sim
