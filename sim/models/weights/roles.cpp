// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/weights/roles.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/inputs/json_reader.h"
#include "sim/models/report/pipeline_stages.h"
#include "sim/report/json.h"
#include "sim/report/table.h"

namespace reshard::sim {
namespace {

constexpr JsonLimits kRolesLimits{2, std::int64_t{1} << 16, 1 << 16};

// '*' matches any text without a dot.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos && name[resume] != '.') {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

struct RoleRow {
  std::string name;
  const Weight* weight;
  std::int64_t count;
};

std::vector<RoleRow> rows_of(const Model& model) {
  std::vector<RoleRow> out;
  std::map<std::pair<std::string, std::vector<std::int64_t>>, std::size_t> known;
  model.for_each([&](const Weight& weight) {
    std::string name = weight.name;
    if (int layer = layer_in(name); layer >= 0) {
      std::string number = fmt::format("layers.{}.", layer);
      name.replace(name.find(number), number.size(), "layers.*.");
    }
    auto [at, is_new] =
        known.try_emplace({name, {weight.shape.begin(), weight.shape.end()}}, out.size());
    if (is_new) out.push_back({name, &weight, 0});
    ++out[at->second].count;
  });
  return out;
}

WeightGroup& group_of(Model& model, const std::string& name) {
  for (WeightGroup& layer : model.layers)
    if (name.starts_with(layer.prefix)) return layer;
  return model.head;
}

}  // namespace

std::string roles_text(const Model& model, std::size_t width) {
  Table table({"weight", ">count", "shape", "role"});
  for (const RoleRow& row : rows_of(model))
    table.add_row({row.name, std::to_string(row.count),
                   fmt::format("{}[{}]", text(row.weight->dtype), text(row.weight->shape)),
                   std::string(text(row.weight->role))});
  return table.text(width);
}

std::string roles_json(const Model& model) {
  return written(
      {{"schema", "reshard.roles/1"}, {"weights", list_json(rows_of(model), [](const RoleRow& row) {
                                         return Json{{"name", row.name},
                                                     {"count", row.count},
                                                     {"shape", values_json(row.weight->shape)},
                                                     {"dtype", text(row.weight->dtype)},
                                                     {"role", text(row.weight->role)}};
                                       })}});
}

std::vector<RolePattern> parse_roles(std::string_view text, const std::string& place) {
  auto json = read_json<nlohmann::json>(text, place, kRolesLimits);
  std::vector<RolePattern> out;
  for (const auto& [pattern, role] : json.items()) {
    std::string field = fmt::format("{}: {}", place, quoted(pattern, 120));
    if (!role.is_string())
      throw InputError(fmt::format("{}: expected a role, found {}", field, shown(role)));
    out.push_back({pattern, parse_role(role.get<std::string>(), field)});
  }
  return out;
}

void apply_roles(const std::vector<RolePattern>& patterns, const std::vector<FileTensor>& tensors,
                 Model& model, const std::string& place) {
  std::vector<bool> used(patterns.size(), false);
  auto role_of = [&](const std::string& name) -> const RolePattern* {
    for (std::size_t i = patterns.size(); i-- > 0;)
      if (matches(patterns[i].pattern, name)) {
        used[i] = true;
        return &patterns[i];
      }
    return nullptr;
  };
  auto change = [&](WeightGroup& group) {
    for (Weight& weight : group.weights)
      if (const RolePattern* found = role_of(weight.name)) weight.role = found->role;
  };
  FileNames names(model);
  std::vector<Weight> more;
  for (const FileTensor& tensor : tensors) {
    if (names.find(tensor.name)) continue;
    const RolePattern* found = role_of(tensor.name);
    if (found == nullptr) continue;
    if (!tensor.shape)
      throw InputError(
          fmt::format("{}: {}: expected its shape in a file next to the index, found "
                      "none",
                      place, tensor.name));
    more.push_back(
        {tensor.name, found->role, *tensor.shape, model.embedding.weights.front().dtype});
  }
  change(model.embedding);
  for (WeightGroup& layer : model.layers) change(layer);
  change(model.head);
  for (Weight& weight : more) group_of(model, weight.name).weights.push_back(std::move(weight));
  for (std::size_t i = 0; i < patterns.size(); ++i)
    if (!used[i])
      throw InputError(fmt::format("{}: {}: expected a name of {}, found none", place,
                                   quoted(patterns[i].pattern, 120), model.file));
}

}  // namespace reshard::sim
