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

// Into its layer, or in front of the head, which stays the last weight.
void add(Model& model, Weight weight) {
  for (WeightGroup& layer : model.layers)
    if (weight.name.starts_with(layer.prefix)) return layer.weights.push_back(std::move(weight));
  model.head.weights.insert(model.head.weights.end() - 1, std::move(weight));
}

bool is_loose(Role role) {
  return role == Role::Whole || role == Role::Column || role == Role::Row;
}
bool is_of_experts(Role role) {
  return role == Role::ExpertGate || role == Role::ExpertUp || role == Role::ExpertDown;
}

// How many dims a weight of the role has.
int dims_of(const Weight& weight) {
  if (weight.is_bias()) return is_of_experts(weight.role) ? 2 : 1;
  switch (weight.role) {
    case Role::FinalNorm:
    case Role::InputNorm:
    case Role::MlpNorm:
    case Role::PostAttentionNorm:
    case Role::PostMlpNorm:
    case Role::QueryNorm:
    case Role::KeyNorm:
    case Role::Sinks:
    case Role::QueryLatentNorm:
    case Role::KeyValueLatentNorm:
    case Role::RouterBias:
      return 1;
    default:
      return is_of_experts(weight.role) ? 3 : 2;
  }
}

// Refuses roles that a weight cannot have, whatever the framework.
class RoleChecks {
 public:
  RoleChecks(const Model& model, const std::string& place) : model_(model), place_(place) {}

  // Before its role becomes this one.
  void refuse_fixed(const Weight& weight) const {
    if (weight.own_role() == Role::RouterBias)
      fail(weight, "no other role than router bias, which is no parameter", text(weight.role));
    if (weight.own_role() == Role::Head && model_.is_tied)
      fail(weight, "no other role than head, as it is the embedding (tie_word_embeddings)",
           text(weight.role));
  }

  void check(const WeightGroup& group, bool is_layer) const {
    for (const Weight& weight : group.weights) {
      if (!weight.is_added && !weight.replaced) continue;
      if (is_loose(weight.role)) {
        if (weight.role != Role::Whole && weight.shape.size() == 0)
          fail(weight, "whole for a tensor without dims", text(weight.role));
        continue;
      }
      if (!is_layer || weight.role == Role::Embedding || weight.role == Role::Head ||
          weight.role == Role::FinalNorm)
        fail(weight,
             is_layer ? "a role within a layer"
                      : "whole, column or row for a tensor outside of layers",
             text(weight.role));
      if (is_of_experts(weight.role) || weight.role == Role::RouterBias)
        fail(weight, "a role other than those of experts and router bias", text(weight.role));
      refuse_second(group, weight);
      check_shape(group, weight);
    }
  }

 private:
  // Frameworks look for the one weight of a role.
  void refuse_second(const WeightGroup& group, const Weight& weight) const {
    for (const Weight& other : group.weights)
      if (&other != &weight && other.is_bias() == weight.is_bias() &&
          (other.role == weight.role || other.own_role() == weight.role))
        fail(weight, "a role that no other weight of its layer has",
             fmt::format("{}, which is that of {}", text(weight.role), other.name));
  }

  void check_shape(const WeightGroup& group, const Weight& weight) const {
    if (weight.shape.size() != dims_of(weight))
      fail(weight, fmt::format("{} dims for {}", dims_of(weight), text(weight.role)),
           fmt::format("[{}]", text(weight.shape)));
    std::int64_t rows = weight.shape[0];
    if (weight.role == Role::Sinks) rows = model_.heads;
    if (const Weight* matrix = group.find(weight.role); matrix != nullptr && weight.is_bias())
      rows = matrix->shape[0];
    if (weight.shape[0] != rows)
      fail(weight, fmt::format("{} rows for {}", rows, text(weight.role)),
           fmt::format("[{}]", text(weight.shape)));
  }

  [[noreturn]] void fail(const Weight& weight, std::string_view expected,
                         std::string_view found) const {
    throw InputError(
        fmt::format("{}: {}: expected {}, found {}", place_, weight.name, expected, found));
  }

  const Model& model_;
  const std::string& place_;
};

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
  if (!json.is_object())
    throw InputError(
        fmt::format("{}: expected an object of roles by pattern, found {}", place, shown(json)));
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
  const RoleChecks checks(model, place);
  auto give = [](Weight& weight, Role role) {
    // What a projection cut by columns adds is added once.
    weight.role = role == Role::Row && weight.is_bias() ? Role::Whole : role;
  };
  auto change = [&](WeightGroup& group) {
    for (Weight& weight : group.weights) {
      const RolePattern* found = role_of(weight.name);
      if (found == nullptr || found->role == weight.role) continue;
      checks.refuse_fixed(weight);
      weight.replaced = weight.own_role();
      give(weight, found->role);
      if (weight.role == *weight.replaced) weight.replaced.reset();
    }
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
    Weight weight{tensor.name, Role::Whole, *tensor.shape, model.embedding.weights.front().dtype};
    weight.is_added = true;
    give(weight, found->role);
    more.push_back(std::move(weight));
  }
  change(model.embedding);
  for (WeightGroup& layer : model.layers) change(layer);
  change(model.head);
  for (Weight& weight : more) add(model, std::move(weight));
  checks.check(model.embedding, false);
  for (const WeightGroup& layer : model.layers) checks.check(layer, true);
  checks.check(model.head, false);
  for (std::size_t i = 0; i < patterns.size(); ++i)
    if (!used[i])
      throw InputError(fmt::format("{}: {}: expected a name of {}, found none", place,
                                   quoted(patterns[i].pattern, 120), model.file));
}

}  // namespace reshard::sim
