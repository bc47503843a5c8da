// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/weights/model.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"

namespace reshard::sim {
namespace {

constexpr std::array<std::string_view, kRoleCount> kRoles = {"embedding",
                                                             "head",
                                                             "final norm",
                                                             "input norm",
                                                             "mlp norm",
                                                             "post attention norm",
                                                             "post mlp norm",
                                                             "query",
                                                             "key",
                                                             "value",
                                                             "attention out",
                                                             "query norm",
                                                             "key norm",
                                                             "sinks",
                                                             "query latent",
                                                             "query latent norm",
                                                             "query up",
                                                             "key value latent",
                                                             "key value latent norm",
                                                             "key value up",
                                                             "gate",
                                                             "up",
                                                             "down",
                                                             "shared gate",
                                                             "shared up",
                                                             "shared down",
                                                             "shared switch",
                                                             "router",
                                                             "router bias",
                                                             "expert gate",
                                                             "expert up",
                                                             "expert down",
                                                             "whole",
                                                             "column",
                                                             "row"};

}  // namespace

std::string_view text(Role role) { return kRoles[static_cast<std::size_t>(role)]; }

Role parse_role(std::string_view text, std::string_view field) {
  for (std::size_t i = 0; i < kRoles.size(); ++i)
    if (kRoles[i] == text) return static_cast<Role>(i);
  throw InputError(fmt::format("{}: expected a role ({}), found {}", field, fmt::join(kRoles, ", "),
                               quoted(text)));
}

bool Model::has(Role role) const {
  return std::any_of(layers.begin(), layers.end(),
                     [&](const WeightGroup& layer) { return layer.has(role); });
}

const Weight* WeightGroup::find(Role role, bool bias) const {
  for (const Weight& weight : weights)
    if (weight.role == role && weight.is_bias() == bias) return &weight;
  return nullptr;
}

const Weight* WeightGroup::find_own(Role own_role, bool bias) const {
  for (const Weight& weight : weights)
    if (weight.own_role() == own_role && weight.is_bias() == bias) return &weight;
  return nullptr;
}

bool has_scales(const Weight& weight) {
  if (weight.is_added || !weight.is_quantised || weight.is_bias() || weight.shape.size() < 2)
    return false;
  switch (weight.own_role()) {
    case Role::Query:
    case Role::Key:
    case Role::Value:
    case Role::AttentionOut:
    case Role::QueryLatent:
    case Role::QueryUp:
    case Role::KeyValueLatent:
    case Role::KeyValueUp:
    case Role::Gate:
    case Role::Up:
    case Role::Down:
    case Role::SharedGate:
    case Role::SharedUp:
    case Role::SharedDown:
    case Role::ExpertGate:
    case Role::ExpertUp:
    case Role::ExpertDown:
      return true;
    default:
      return false;
  }
}

}  // namespace reshard::sim
