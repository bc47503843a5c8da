// SPDX-License-Identifier: BSD-3-Clause
#include "sim/trace/operator_line.h"

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/trace/line_reader.h"
#include "sim/trace/op_values.h"
#include "sim/trace/trace.h"

namespace reshard::sim {
namespace {

constexpr std::string_view kName = "the name of a tensor from a line above";

OpPlacements placements_of(const std::string& text, int axes, int dims, std::string_view field) {
  PlacementList list = parse_placements(text, axes, dims, field);
  for (int order : list.order)
    if (order >= 0)
      throw InputError(
          fmt::format("{}: expected dims sharded in the order of the axes, as for all tensors of "
                      "calls, found {}",
                      field, reshard::quoted(text)));
  return {list.placements.begin(), list.placements.end()};
}

// ["R", null] becomes "R" and "".
std::vector<std::string> texts_of(TraceFields& fields, const TraceJson& json,
                                  std::string_view key) {
  constexpr std::string_view kWhat = "a list of placements such as [\"S(0)R\", null]";
  if (!json.is_array()) fields.fail(key, kWhat, json);
  std::vector<std::string> out;
  for (const TraceJson& item : json) {
    if (!item.is_string() && !item.is_null()) fields.fail(key, kWhat, json);
    out.push_back(item.is_null() ? "" : item.get<std::string>());
  }
  return out;
}

}  // namespace

const OperatorLineReader::Known& OperatorLineReader::known(std::string_view key,
                                                           const std::string& name) const {
  auto at = known_.find(name);
  if (at == known_.end())
    builder_.fail(fmt::format("{}: expected {}, found {}", key, kName, reshard::quoted(name)));
  return at->second;
}

void OperatorLineReader::give(OperatorLine& line, const std::string& name) {
  line.names.push_back(name);
  if (name.empty()) {
    line.out.push_back(kNoValue);
    return;
  }
  int dims = line.kind == OperatorLine::Kind::Tensor ? line.spec.meta.shape.size() : -1;
  known_[name] = {next_, line.mesh, dims};
  line.out.push_back(next_++);
}

std::vector<ValueId> OperatorLine::flat_in() const {
  std::vector<ValueId> out;
  for (const Argument& argument : in)
    out.insert(out.end(), argument.values.begin(), argument.values.end());
  return out;
}

std::vector<std::string> OperatorLine::flat_names() const {
  std::vector<std::string> out;
  for (const Argument& argument : in)
    out.insert(out.end(), argument.names.begin(), argument.names.end());
  return out;
}

std::shared_ptr<const TracePlace> OperatorLineReader::read_place(TraceFields& fields,
                                                                 const TraceBuilder& builder) {
  std::optional<std::string> module = fields.optional_string("module", "a dotted name"),
                             pass =
                                 fields.optional_string("pass", "forward, backward or optimizer");
  if (!module && !pass) return nullptr;
  if (pass && *pass != "forward" && *pass != "backward" && *pass != "optimizer")
    builder.fail(fmt::format("pass: expected forward, backward or optimizer, found {}",
                             reshard::quoted(*pass)));
  return std::make_shared<const TracePlace>(
      TracePlace{module.value_or(""), pass.value_or("forward")});
}

void OperatorLineReader::read_place(TraceFields& fields, OperatorLine& line) const {
  std::shared_ptr<const TracePlace> place = read_place(fields, builder_);
  if (!place) return;
  line.module = place->module;
  line.pass = place->pass;
}

std::shared_ptr<const OperatorLine> OperatorLineReader::read_tensor(TraceFields& fields) {
  auto line = std::make_shared<OperatorLine>();
  std::string name = fields.string("tensor", "a name");
  std::string mesh = fields.string("mesh", "the name of a mesh of the header");
  auto at = meshes_.find(mesh);
  if (at == meshes_.end())
    builder_.fail(fmt::format("mesh: expected the name of a mesh of the header, found {}",
                              reshard::quoted(mesh)));
  line->mesh = at->second;
  std::string shape = fields.shape("shape"),
              dtype = fields.string("dtype", "a dtype such as \"bf16\""),
              placements = fields.string("placements", "placements such as \"S(0)R\"");
  builder_.placed([&] {
    line->spec.meta = {parse_shape(shape), call_dtype(dtype)};
    line->spec.placements =
        placements_of(placements, line->mesh->axes(), line->spec.meta.shape.size(), "placements");
    // Built only because the constructor refuses impossible layouts.
    std::vector<Placement> plain;
    for (const OpPlacement& placement : line->spec.placements) plain.push_back(placement.carried());
    (void)Layout(line->spec.meta.shape, line->spec.meta.dtype, line->mesh, std::move(plain));
    return 0;
  });
  if (fields.has("below")) line->below = fields.integer("below", 1, kMaxBytes);
  if (const TraceJson* value = fields.find("value")) {
    if (!value->is_number()) fields.fail("value", "a number", *value);
    line->value = value->get<double>();
  }
  read_place(fields, *line);
  give(*line, name);
  return line;
}

void OperatorLineReader::read_expect(TraceFields& fields, OperatorLine& line) const {
  const TraceJson* expect = fields.find("expect");
  if (!expect) return;
  if (!expect->is_object()) fields.fail("expect", "an object with in and out", *expect);
  TraceFields parts(*expect, builder_.place());
  if (const TraceJson* in = parts.find("in")) line.expect_in = texts_of(parts, *in, "in");
  if (const TraceJson* out = parts.find("out")) line.expect_out = texts_of(parts, *out, "out");
  read_metas(parts, line);
  parts.refuse_others("expect");
}

void OperatorLineReader::read_metas(TraceFields& parts, OperatorLine& line) const {
  constexpr std::string_view kShapes = "a list of shapes such as [[32, 8], null]",
                             kDTypes = "a list of dtypes, one for each shape of out_shape";
  const TraceJson *shapes = parts.find("out_shape"), *dtypes = parts.find("out_dtype");
  if (!shapes && !dtypes) return;
  const TraceJson &shape_list = parts.required("out_shape", kShapes),
                  &dtype_list = parts.required("out_dtype", kDTypes);
  if (!shape_list.is_array()) parts.fail("out_shape", kShapes, shape_list);
  if (!dtype_list.is_array() || dtype_list.size() != shape_list.size())
    parts.fail("out_dtype", kDTypes, dtype_list);
  for (std::size_t i = 0; i < shape_list.size(); ++i) {
    const TraceJson &shape = shape_list[i], &dtype = dtype_list[i];
    std::optional<TensorMeta>& meta = line.expect_metas.emplace_back();
    if (shape.is_null() && dtype.is_null()) continue;
    if (!shape.is_array()) parts.fail("out_shape", kShapes, shape_list);
    if (!dtype.is_string()) parts.fail("out_dtype", kDTypes, dtype_list);
    std::string sizes = shape.dump();
    meta = builder_.placed([&] {
      return TensorMeta{parse_shape(std::string_view(sizes).substr(1, sizes.size() - 2)),
                        call_dtype(dtype.get<std::string>(), "out_dtype")};
    });
  }
}

std::shared_ptr<const OperatorLine> OperatorLineReader::read_call(TraceFields& fields) {
  auto line = std::make_shared<OperatorLine>();
  line->kind = OperatorLine::Kind::Call;
  line->call = fields.string("call", "an operator of ATen such as \"addmm\"");
  constexpr std::string_view kIn = "a list of names, lists of names and nulls";
  const TraceJson& in = fields.required("in", kIn);
  if (!in.is_array()) fields.fail("in", kIn, in);
  auto value_of_entry = [&](const TraceJson& entry) {
    if (entry.is_null()) return kNoValue;
    if (!entry.is_string()) fields.fail("in", kIn, in);
    const Known& tensor = known("in", entry.get<std::string>());
    if (line->mesh && *line->mesh != *tensor.mesh)
      builder_.fail(fmt::format("in: {} is on another mesh than the tensors before it",
                                reshard::quoted(entry.get<std::string>())));
    if (!line->mesh) line->mesh = tensor.mesh;
    return tensor.value;
  };
  for (const TraceJson& entry : in) {
    OperatorLine::Argument& argument = line->in.emplace_back();
    argument.is_list = entry.is_array();
    auto add = [&](const TraceJson& item) {
      argument.values.push_back(value_of_entry(item));
      argument.names.push_back(item.is_null() ? "" : item.get<std::string>());
    };
    if (!entry.is_array()) add(entry);
    if (entry.is_array())
      for (const TraceJson& item : entry) add(item);
  }
  if (!line->mesh) builder_.fail("in: expected at least one tensor");
  if (const TraceJson* attr = fields.find("attr")) {
    if (!attr->is_object()) fields.fail("attr", "an object of arguments by ATen's names", *attr);
    for (const auto& entry : attr->items())
      line->attributes.set(entry.key(), builder_.placed([&] {
        try {
          return op_value_of(entry.value());
        } catch (const InputError& error) {
          throw error.in("attr " + reshard::quoted(entry.key()));
        }
      }));
  }
  line->loss_parallel = fields.boolean("loss_parallel", false);
  if (fields.has("duration_ps"))
    line->duration_ps = fields.integer("duration_ps", 0, kMaxDurationPs);
  read_place(fields, *line);
  read_expect(fields, *line);
  if (line->expect_out && !known_operator(line->call))
    line->without_rule = std::make_shared<const Operator>(operator_without_rule(line->call));
  builder_.placed([&] { return &line->op(); });
  constexpr std::string_view kOut = "a list of names and nulls";
  const TraceJson& out = fields.required("out", kOut);
  if (!out.is_array()) fields.fail("out", kOut, out);
  for (const TraceJson& entry : out) {
    if (!entry.is_string() && !entry.is_null()) fields.fail("out", kOut, out);
    std::string name = entry.is_null() ? "" : entry.get<std::string>();
    auto before = name.empty() ? known_.end() : known_.find(name);
    line->written.push_back(before == known_.end() ? kNoValue : before->second.value);
    give(*line, name);
  }
  return line;
}

std::shared_ptr<const OperatorLine> OperatorLineReader::read_redistribute(TraceFields& fields) {
  auto line = std::make_shared<OperatorLine>();
  line->kind = OperatorLine::Kind::Redistribute;
  std::string name = fields.string("tensor", kName);
  const Known tensor = known("tensor", name);
  line->mesh = tensor.mesh;
  line->in.push_back({false, {tensor.value}, {name}});
  std::string to = fields.string("to", "placements such as \"S(0)R\"");
  int dims = tensor.dims < 0 ? kMaxDims : tensor.dims;
  line->to = builder_.placed([&] { return placements_of(to, line->mesh->axes(), dims, "to"); });
  read_place(fields, *line);
  give(*line, fields.string("out", "a name"));
  return line;
}

}  // namespace reshard::sim
