// SPDX-License-Identifier: BSD-3-Clause
#include "sim/check/index_map_field.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/integers.h"
#include "sim/inputs/json_reader.h"

namespace reshard::sim {
namespace {

constexpr std::string_view kMeshAxis = "an axis of the mesh, by name or number, or a list of them";
constexpr std::string_view kIndices = "a list of indices from 0, or one such list for each rank";

std::vector<std::int64_t> integers_in(const TraceFields& fields, std::string_view key,
                                      std::string_view what, const TraceJson& value) {
  std::vector<std::int64_t> out;
  if (!value.is_array()) fields.fail(key, what, value);
  for (const TraceJson& entry : value) {
    auto number = integer_in(entry, 0, kMaxBytes);
    if (!number) fields.fail(key, what, entry);
    out.push_back(*number);
  }
  return out;
}

class MapReader {
 public:
  MapReader(TraceFields& fields, const Mesh& mesh) : fields_(fields), mesh_(mesh) {}

  MappedIndices read() {
    MappedIndices out;
    read_axes(out);
    if (fields_.has("blocks")) {
      out.blocks = fields_.integer("blocks", 1, kMaxBytes);
    } else {
      out.dim = static_cast<int>(fields_.integer("dim", 0, kMaxDims - 1, 0));
      out.rows = fields_.integer("rows", 1, kMaxBytes, 1);
    }
    out.map = read_map(out);
    fields_.refuse_others("a map");
    return out;
  }

 private:
  void read_axes(MappedIndices& out) {
    const TraceJson* value = fields_.find("axis");
    if (value == nullptr) {
      for (int axis = 0; axis < mesh_.axes(); ++axis) out.axes.push_back(axis);
      return;
    }
    if (!value->is_array())
      out.axes.push_back(axis(*value));
    else
      for (const TraceJson& entry : *value) {
        int found = axis(entry);
        if (std::find(out.axes.begin(), out.axes.end(), found) != out.axes.end())
          fields_.fail("axis", "each axis once", *value);
        out.axes.push_back(found);
      }
    if (out.axes.empty()) fields_.fail("axis", kMeshAxis, *value);
  }

  int axis(const TraceJson& value) {
    if (value.is_string()) {
      for (int axis = 0; !mesh_.names().empty() && axis < mesh_.axes(); ++axis)
        if (mesh_.names()[axis] == value.get<std::string>()) return axis;
    } else if (auto number = integer_in(value, 0, mesh_.axes() - 1)) {
      return static_cast<int>(*number);
    }
    fields_.fail("axis", kMeshAxis, value);
  }

  IndexMap read_map(const MappedIndices& of) {
    if (fields_.has("rule") + fields_.has("sizes") + fields_.has("indices") != 1)
      throw InputError("map: expected one of \"rule\", \"sizes\" and \"indices\"");
    IndexMap out;
    if (const TraceJson* sizes = fields_.find("sizes")) {
      out.rule = IndexMap::Rule::Sizes;
      out.sizes = integers_in(fields_, "sizes", "a list of sizes, one for each rank", *sizes);
    } else if (const TraceJson* indices = fields_.find("indices")) {
      out.rule = IndexMap::Rule::Lists;
      read_lists(*indices, of, out);
    } else {
      out.rule = rule();
    }
    return out;
  }

  IndexMap::Rule rule() {
    constexpr std::pair<std::string_view, IndexMap::Rule> kRules[] = {
        {"even", IndexMap::Rule::Even},
        {"remainder first", IndexMap::Rule::RemainderFirst},
        {"remainder last", IndexMap::Rule::RemainderLast},
        {"round robin", IndexMap::Rule::RoundRobin},
    };
    constexpr std::string_view kWhat =
        "\"even\", \"remainder first\", \"remainder last\" or \"round robin\"";
    std::string name = fields_.string("rule", kWhat);
    for (const auto& [text, rule] : kRules)
      if (text == name) return rule;
    throw InputError(fmt::format("rule: expected {}, found {}", kWhat, reshard::quoted(name)));
  }

  // Either a list for each rank, or one list that is divided evenly among them (a map from slots to
  // experts).
  void read_lists(const TraceJson& value, const MappedIndices& of, IndexMap& out) {
    if (!value.is_array() || value.empty()) fields_.fail("indices", kIndices, value);
    if (value.front().is_array()) {
      for (const TraceJson& list : value)
        out.lists.push_back(integers_in(fields_, "indices", kIndices, list));
      return;
    }
    std::vector<std::int64_t> all = integers_in(fields_, "indices", kIndices, value);
    std::int64_t ranks = 1;
    for (int axis : of.axes) ranks *= mesh_.axis_size(axis);
    if (std::ssize(all) % ranks != 0)
      throw InputError(fmt::format("indices: expected a list that {} ranks share evenly, found {}",
                                   ranks, all.size()));
    for (std::int64_t rank = 0, each = std::ssize(all) / ranks; rank < ranks; ++rank)
      out.lists.emplace_back(all.begin() + rank * each, all.begin() + (rank + 1) * each);
  }

  TraceFields& fields_;
  const Mesh& mesh_;
};

}  // namespace

MappedIndices read_index_map(const TraceFields& line, const TraceJson& value, const Mesh& mesh) {
  constexpr std::string_view kWhat = "an object such as {\"axis\": \"ep\", \"rule\": \"even\"}";
  if (!value.is_object()) line.fail("map", kWhat, value);
  std::string place = "map";
  TraceFields fields(value, place);
  try {
    return MapReader(fields, mesh).read();
  } catch (const InputError& error) {
    if (std::string_view(error.what()).starts_with(place)) throw;
    throw error.in(place);
  }
}

}  // namespace reshard::sim
