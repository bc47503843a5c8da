// SPDX-License-Identifier: BSD-3-Clause
// FSDP2, which cuts each parameter that tensor parallelism has cut before (PyTorch,
// distributed/fsdp/_fully_shard/_fsdp_param.py), and frameworks that flatten parameters: FSDP1,
// layer by layer, and DeepSpeed's ZeRO-3, one parameter at a time
// (runtime/zero/partition_parameters.py).
//
// Hugging Face has the correction bias of a router as a buffer, not a parameter, so every rank has
// all of it.
#include <algorithm>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/models/frameworks/framework.h"
#include "sim/models/frameworks/module_order.h"
#include "sim/models/frameworks/parameters.h"

namespace reshard::sim {
namespace {

std::int64_t product_of(Parallelism& options, std::initializer_list<std::string_view> keys) {
  std::int64_t out = 1;
  for (std::string_view key : keys) {
    out *= options.number(key, 1);
    if (out > std::int64_t{1} << 20)
      throw InputError(fmt::format("{}: expected at most 2^20 ranks", options.field()));
  }
  return out;
}

class Fsdp2 {
 public:
  explicit Fsdp2(const Side& side) : side_(side) {
    Parallelism& options = side.options;
    tp_ = options.number("tp", 1);
    how_ = options.choice("experts", {"tp", "ep", "whole"});
    std::int64_t replicas = options.number("replicate", 1), dp = options.number("dp", 1);
    mesh_ = mesh_lines({{"replicate", replicas}, {"dp", dp}, {"tp", tp_}}, side.ranks);
    if (tp_ > 1 && side.model.experts > 0)
      side.notes.push_back(how_ == "tp"   ? "tp cuts the rows of experts (experts=ep, whole: not)"
                           : how_ == "ep" ? "the ranks of tp share the experts"
                                          : "tp leaves experts whole");
  }

  void write() {
    for (const ModelParameter& of : parameters_of(side_.model, ExpertForm::InMemory))
      side_.lines.buffer(of.name, mesh_, of.blocks(), *of.weight, placements_of(of), of.extras);
  }

 private:
  // Placements that cut dim 0 first by tp, then by FSDP2.
  std::string rows_twice(std::int64_t rows) const {
    // PyTorch prints this as a strided shard; where tp does not divide the rows, only the shard
    // order gives what ranks really have (PyTorch issue 168134).
    return rows % tp_ == 0 ? fmt::format("R_S(0,{})S(0)", tp_) : "RS(0)[1]S(0)[0]";
  }

  std::string placements_of(const ModelParameter& of) const {
    if (of.weight->role == Role::RouterBias) return "RRR";
    if (of.is_expert && how_ == "ep" && tp_ > 1) return rows_twice(of.rows());
    if (tp_ == 1 || of.cut < 0 || (of.is_expert && how_ == "whole")) return "RS(0)R";
    return of.cut == 0 ? rows_twice(of.rows()) : fmt::format("RS(0)S({})", of.cut);
  }

  const Side& side_;
  std::int64_t tp_ = 1;
  std::string how_;
  MeshLines mesh_;
};

// The model's parameters as they are before they are flattened.
class Flat {
 public:
  explicit Flat(const Side& side)
      : side_(side), mesh_(mesh_lines({{"dp", std::ssize(side.ranks)}}, side.ranks)) {}

  // FSDP1 wraps the layers; what is left is the outermost flat parameter.
  void write_layers() {
    const bool is_aligned = side_.options.flag("orig-params");
    side_.notes.push_back(
        is_aligned ? "use_orig_params=True: each parameter begins at a multiple of 16 bytes"
                   : "use_orig_params=False: parameters without gaps (orig-params: with them)");
    auto add = [&](const WeightGroup& group, const std::string& name) {
      std::vector<std::string> names;
      std::int64_t align = 1;
      for (const ModelParameter& of : in_module_order(parameters_of(group), side_.model)) {
        if (!has_named(of)) continue;
        names.push_back(of.name);
        if (is_aligned) align = std::max<std::int64_t>(1, 16 / size_bytes(of.weight->dtype));
        if (of.weight->is_added)
          side_.notes.push_back(of.weight->name +
                                " last, as it is not known where its module is registered");
      }
      if (!names.empty()) side_.lines.flat_of(name, names, {"dp"}, align, 1);
    };
    for (const WeightGroup& layer : side_.model.layers) add(layer, layer.prefix + "_flat_param");
    add(outside(), "_flat_param");
  }

  // ZeRO-3 has each by itself.
  void write_each() {
    auto add = [&](const WeightGroup& group) {
      for (const ModelParameter& of : parameters_of(group))
        if (has_named(of)) side_.lines.flat_of(of.name, {of.name}, {"dp"}, 1, 1);
    };
    for (const WeightGroup& layer : side_.model.layers) add(layer);
    add(outside());
  }

 private:
  std::vector<ModelParameter> parameters_of(const WeightGroup& group) const {
    return sim::parameters_of(group, side_.model, ExpertForm::InMemory);
  }
  WeightGroup outside() const {
    WeightGroup out{"", side_.model.embedding.weights};
    for (const Weight& weight : side_.model.head.weights) out.weights.push_back(weight);
    return out;
  }
  // Names a parameter; a buffer is written at once.
  bool has_named(const ModelParameter& of) {
    const bool is_parameter = of.weight->role != Role::RouterBias;
    if (is_parameter)
      side_.lines.named(of.name, mesh_, of.blocks(), of.extras);
    else
      side_.lines.buffer(of.name, mesh_, of.blocks(), *of.weight);
    return is_parameter;
  }

  const Side& side_;
  MeshLines mesh_;
};

}  // namespace

std::int64_t fsdp2_ranks(const Model&, Parallelism& options) {
  return product_of(options, {"replicate", "dp", "tp"});
}
void write_fsdp2(const Side& side) { Fsdp2(side).write(); }

std::int64_t flat_ranks(const Model&, Parallelism& options) { return product_of(options, {"dp"}); }
void write_fsdp1(const Side& side) { Flat(side).write_layers(); }
void write_zero3(const Side& side) { Flat(side).write_each(); }

}  // namespace reshard::sim
