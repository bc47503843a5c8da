// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/frameworks/needed_parts.h"

#include <span>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/models/frameworks/framework.h"
#include "sim/models/frameworks/parameters.h"

namespace reshard::sim {
namespace {

constexpr Role kAttention[] = {Role::Query, Role::Key, Role::Value};
constexpr Role kMlp[] = {Role::Gate, Role::Up};
constexpr Role kShared[] = {Role::SharedGate, Role::SharedUp};
constexpr Role kExperts[] = {Role::ExpertGate, Role::ExpertUp};
constexpr Role kExpertsWithDown[] = {Role::ExpertGate, Role::ExpertUp, Role::ExpertDown};

class Needs {
 public:
  Needs(const Side& side, Fusion fusion) : side_(side), fusion_(fusion) {}

  void check() const {
    if (fusion_ == Fusion::Files) return;
    if (fusion_ == Fusion::InMemory) return check_parameters();
    need(side_.model.embedding, Role::Embedding);
    for (const WeightGroup& layer : side_.model.layers) check_layer(layer);
  }

 private:
  // A parameter is cut in one way.
  void check_parameters() const {
    for (const ModelParameter& of : parameters_of(side_.model, ExpertForm::InMemory))
      for (const Weight* each : of.weights) {
        if (cut_dim(*each) == of.cut) continue;
        const bool is_first = !each->replaced;
        const Weight &wrong = is_first ? *of.weight : *each, &other = is_first ? *each : *of.weight;
        fail(wrong, fmt::format("a role that is cut as {} ({}), with which it is one parameter",
                                other.name, text(other.role)));
      }
  }

  void check_layer(const WeightGroup& layer) const {
    const bool is_mla = layer.has(Role::KeyValueUp) || layer.find_own(Role::KeyValueUp) != nullptr,
               is_megatron = fusion_ == Fusion::Megatron;
    if (is_mla && (is_megatron || layer.has(Role::Query))) need(layer, Role::KeyValueUp);
    if (!is_mla) need_all(layer, kAttention);
    need_all(layer, kMlp);
    need_all(layer, kShared);
    need_all(layer, is_megatron ? std::span<const Role>(kExpertsWithDown) : kExperts);
    if (layer.has(Role::QueryLatent)) need(layer, Role::KeyValueLatent);
    if (!is_megatron) return;
    need(layer, Role::AttentionOut);
    if (layer.has(Role::ExpertGate)) need(layer, Role::Router);
    if (!is_mla) return;
    need(layer, Role::KeyValueLatent);
    need(layer, Role::KeyValueLatentNorm);
    if (layer.find(Role::Query) != nullptr) return;
    for (Role role : {Role::QueryLatent, Role::QueryUp, Role::QueryLatentNorm}) need(layer, role);
  }

  void need(const WeightGroup& layer, Role role) const {
    if (layer.find(role) != nullptr) return;
    if (const Weight* own = layer.find_own(role))
      fail(*own, fmt::format("{}, which {} needs", text(role), side_.options.framework()));
    throw InputError(fmt::format("{}: expected {} in {}, which {} needs, found none",
                                 side_.options.field(), text(role), layer.prefix,
                                 side_.options.framework()));
  }

  // All of them or none.
  void need_all(const WeightGroup& layer, std::span<const Role> roles) const {
    for (bool bias : {false, true}) {
      const Weight* first = nullptr;
      for (Role role : roles)
        if (const Weight* found = layer.find(role, bias); found != nullptr && first == nullptr)
          first = found;
      if (first == nullptr) continue;
      for (Role role : roles) {
        if (layer.find(role, bias) != nullptr) continue;
        if (const Weight* own = layer.find_own(role, bias))
          fail(*own, fmt::format("{}, with which {} joins {}", text(role),
                                 side_.options.framework(), first->name));
        throw InputError(
            fmt::format("{}: {} ({}): expected {} next to it, with which {} joins it, "
                        "found none",
                        side_.options.field(), first->name, text(first->role), text(role),
                        side_.options.framework()));
      }
    }
  }

  [[noreturn]] void fail(const Weight& weight, std::string_view expected) const {
    throw InputError(fmt::format("{}: {}: expected {}, found {} in the file of roles",
                                 side_.options.field(), weight.name, expected, text(weight.role)));
  }

  const Side& side_;
  Fusion fusion_;
};

}  // namespace

void require_parts(const Side& side, Fusion fusion) { Needs(side, fusion).check(); }

void require_all(const Side& side) {
  side.model.for_each([&](const Weight& weight) {
    if (side.lines.holds(weight.name) || (weight.role == Role::Head && side.model.is_tied)) return;
    throw InputError(fmt::format("{}: {}: expected a role that {} has a buffer for, found {}",
                                 side.options.field(), weight.name, side.options.framework(),
                                 text(weight.role)));
  });
}

}  // namespace reshard::sim
