// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/frameworks/serving.h"

#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/models/layer_stages.h"

namespace reshard::sim {
namespace {

class ServingWriter {
 public:
  ServingWriter(const Side& side, const Serving& serving)
      : side_(side), model_(side.model), serving_(serving) {}

  void write() {
    for (const ServingStage& stage : serving_.stages) {
      stage_ = &stage;
      // A stage that needs the embedding as its head has it under its own name.
      const Weight& embedding = model_.embedding.weights.front();
      if (stage.has_embedding)
        vocabulary(embedding.name, embedding, false);
      else if (stage.has_head && model_.is_tied)
        vocabulary(serving_.tied_head.empty() ? embedding.name : std::string(serving_.tied_head),
                   model_.head.weights.back(), true);
      for (int layer : stage.layers) write_layer(model_.layers[static_cast<std::size_t>(layer)]);
      if (!stage.has_head) continue;
      for (const Weight& weight : model_.head.weights)
        if (weight.role != Role::Head)
          own(weight);
        else if (!model_.is_tied)
          vocabulary(weight.name, weight, true);
    }
  }

 private:
  void vocabulary(const std::string& name, const Weight& weight, bool is_head) {
    put(name, is_head && serving_.head_is_dense ? stage_->dense : stage_->attention, weight,
        {fmt::format("{} pad{}", weight.name,
                     is_head ? serving_.head_multiple : serving_.vocabulary_multiple)},
        "RS(0)");
  }

  void put(std::string name, const MeshLines& mesh, const Weight& weight,
           const std::vector<std::string>& blocks, std::string_view placements = {},
           const BufferExtras& extras = {}) {
    for (const auto& [from, to] : serving_.renames)
      if (std::size_t at = name.find(from); at != std::string::npos)
        name.replace(at, from.size(), to);
    side_.lines.buffer(name, mesh, blocks, weight, placements, extras);
  }

  // Under its own name, cut according to its role.
  void own(const Weight& weight) {
    const int last = weight.shape.size() - 1;
    switch (weight.role) {
      case Role::Query:
      case Role::QueryUp:
      case Role::KeyValueUp:
      case Role::Sinks:
        require_divides(side_, "tp", serving_.attention_tp, model_.heads, "attention heads");
        return put(weight.name, stage_->attention, weight, {weight.name}, "RS(0)");
      case Role::AttentionOut:
        if (weight.is_bias()) break;
        require_divides(side_, "tp", serving_.attention_tp, model_.heads, "attention heads");
        return put(weight.name, stage_->attention, weight, {weight.name}, "RS(1)");
      case Role::Router:  // GLM's is kept in f32
        if (model_.family != "glm4_moe" || weight.dtype == DType::F32) break;
        return put(weight.name, stage_->attention, weight, {weight.name}, {}, {.dtype = "f32"});
      case Role::SharedDown:
        if (serving_.shared_is_whole) break;
        [[fallthrough]];
      case Role::Down:
      case Role::Row:
        if (weight.is_bias()) break;
        require_divides(side_, "tp", serving_.dense_tp, weight.shape[last],
                        "columns of " + weight.name);
        return put(weight.name, stage_->dense, weight, {weight.name}, fmt::format("RS({})", last));
      case Role::Column:
        require_divides(side_, "tp", serving_.dense_tp, weight.shape[0], "rows of " + weight.name);
        return put(weight.name, stage_->dense, weight, {weight.name}, "RS(0)");
      default:
        break;
    }
    put(weight.name, stage_->attention, weight, {weight.name});
  }

  void write_layer(const WeightGroup& layer) {
    const bool is_mla = layer.has(Role::KeyValueUp);
    for (const Weight& weight : layer.weights) {
      switch (weight.role) {
        case Role::Query:
          if (is_mla)
            own(weight);
          else
            write_qkv(layer, weight);
          break;
        case Role::QueryLatent:  // with the latent of keys and values, whole on every rank
          require_alike(weight, *layer.find(Role::KeyValueLatent));
          put(renamed(weight, serving_.latents), stage_->attention, weight,
              {weight.name, layer.find(Role::KeyValueLatent)->name});
          break;
        case Role::KeyValueLatent:
          if (!layer.has(Role::QueryLatent)) own(weight);
          break;
        case Role::Gate:
          write_gate_up(weight, *layer.find(Role::Up, weight.is_bias()));
          break;
        case Role::SharedGate:
          write_gate_up(weight, *layer.find(Role::SharedUp, weight.is_bias()));
          break;
        case Role::ExpertGate:
          write_expert(weight, layer.find(Role::ExpertUp, weight.is_bias()));
          break;
        case Role::ExpertDown:
          write_expert(weight, nullptr);
          break;
        case Role::Key:
        case Role::Value:
        case Role::Up:
        case Role::SharedUp:
        case Role::ExpertUp:
          break;
        default:
          own(weight);
      }
    }
  }

  // Replaces the projection in "model.layers.3.self_attn.q_proj.weight".
  static std::string renamed(const Weight& weight, std::string_view projection) {
    std::size_t end = weight.name.rfind('.'), begin = weight.name.rfind('.', end - 1);
    return weight.name.substr(0, begin + 1) + std::string(projection) + weight.name.substr(end);
  }

  // Matrices that are joined have scales together, and all but the last must end with a block.
  void require_alike(const Weight& weight, const Weight& next) const {
    if (!side_.lines.has_scales()) return;
    if (has_scales(weight) != has_scales(next))
      throw InputError(fmt::format(
          "{}: expected {} and {} both in FP8 or neither, as {} joins them; found one of them",
          side_.options.field(), weight.name, next.name, side_.options.framework()));
    const std::int64_t rows = (*model_.scale_block)[0];
    if (!has_scales(weight)) return;
    const std::int64_t found = weight.shape[weight.shape.size() - 2];  // an expert's first dim: all
    if (found % rows != 0)
      throw InputError(fmt::format(
          "{}: expected rows of {} in whole blocks of {}, as it is joined with {}, found {}",
          side_.options.field(), weight.name, rows, next.name, found));
  }

  // KV heads are given to several ranks if there are more ranks than heads.
  void write_qkv(const WeightGroup& layer, const Weight& query) {
    const std::int64_t n = serving_.attention_tp, kv = model_.kv_heads;
    require_divides(side_, "tp", n, model_.heads, "attention heads");
    if (kv % n != 0 && n % kv != 0)
      throw InputError(fmt::format(
          "{}: tp: expected a number that divides {} KV heads, or a multiple of it, found {}",
          side_.options.field(), kv, n));
    const Weight &key = *layer.find(Role::Key, query.is_bias()),
                 &value = *layer.find(Role::Value, query.is_bias());
    require_alike(query, key);
    require_alike(key, value);
    std::vector<std::string> blocks{query.name};
    for (Role role : {Role::Key, Role::Value})
      blocks.push_back(
          fmt::format("{} x{} repeat", layer.find(role, query.is_bias())->name, model_.head_dim));
    put(renamed(query, "qkv_proj"), stage_->attention, query, blocks, "RS(0)");
  }

  void write_gate_up(const Weight& gate, const Weight& up) {
    const std::string name = renamed(gate, "gate_up_proj");
    require_alike(gate, up);
    if (gate.role == Role::SharedGate && serving_.shared_is_whole)
      return put(name, stage_->dense, gate, {gate.name, up.name});
    require_divides(side_, "tp", serving_.dense_tp, gate.shape[0], "rows of " + gate.name);
    put(name, stage_->dense, gate, {gate.name, up.name}, "RS(0)");
  }

  // Writes w13 [gate, up] if `up` is given, otherwise w2.
  void write_expert(const Weight& weight, const Weight* up) {
    const bool is_first = up != nullptr, bias = weight.is_bias();
    if (is_first) require_alike(weight, *up);
    if (is_first)
      require_divides(side_, "tp", serving_.expert_tp, weight.shape[1], "rows of " + weight.name);
    std::vector<std::string> blocks{weight.name};
    if (is_first) blocks.push_back(up->name);
    // gpt_oss keeps gate and up rows alternating, as in its checkpoint.
    if (is_first && model_.has_paired_gate)
      blocks = {fmt::format("{}:1 {}:1 x1", weight.name, up->name)};
    // The ranks that cut an expert add up what they compute, and the bias only once.
    const bool is_added = bias && !is_first && serving_.expert_tp > 1;
    if (is_added && !std::exchange(has_bias_note_, true))
      side_.notes.push_back(
          "w2's bias is on the first of the ranks that cut an expert; the others hold zeros");
    put(fmt::format("{}{}_{}", experts_prefix(weight), is_first ? "w13" : "w2",
                    bias ? serving_.expert_bias : "weight"),
        is_added ? stage_->expert_firsts : stage_->experts, weight, blocks,
        is_first ? "RRS(1)"
        : bias   ? "RRR"
                 : "RRS(2)",
        {.dim = is_first ? 1 : 0, .map = serving_.expert_map});
  }

  const Side& side_;
  const Model& model_;
  const Serving& serving_;
  const ServingStage* stage_ = nullptr;
  bool has_bias_note_ = false;
};

}  // namespace

std::vector<int> layer_counts(const Side& side, int stages, std::vector<int> (*rule)(int, int)) {
  const int layers = static_cast<int>(side.model.layers.size());
  const std::string given = side.options.word("layers", "");
  try {
    return given.empty() ? rule(layers, stages) : stages_in(given, layers, stages);
  } catch (const InputError& error) {
    throw error.in(side.options.field());
  }
}

std::string expert_map_of(const Side& side, std::int64_t ep, bool in_turn, bool is_even) {
  const std::int64_t experts = side.model.experts,
                     more = side.options.number("redundant", 0, 1 << 16);
  if (experts == 0) {
    if (side.options.has("redundant")) side.options.fail("redundant", "a model with experts");
    return "";
  }
  if (more > 0) {
    if (in_turn) side.options.fail("redundant", "no redundant experts where they are in turn");
    if ((experts + more) % ep != 0)
      side.options.fail(
          "redundant",
          fmt::format("a number of slots that {} ranks share evenly with {} experts", ep, experts));
    std::string slots;
    for (std::int64_t slot = 0; slot < experts + more; ++slot)
      slots += fmt::format("{}{}", slot == 0 ? "" : ", ", slot % experts);
    side.notes.push_back("redundant experts are 0, 1, .., as at start, before any was moved");
    return fmt::format(R"({{"axis": "ep", "indices": [{}]}})", slots);
  }
  if (ep > experts || (is_even && experts % ep != 0))
    throw InputError(fmt::format(
        "{}: ep: expected a number of ranks that {}, found {} experts on {}", side.options.field(),
        is_even ? "divides the experts (or redundant=N)" : "is at most that of the experts",
        experts, ep));
  return fmt::format(R"({{"axis": "ep", "rule": "{}"}})",
                     in_turn ? "round robin" : "remainder first");
}

void set_experts(ServingStage& stage, std::int64_t copies, const Serving& serving,
                 const std::vector<Rank>& ranks) {
  auto mesh = [&](std::int64_t tp, const std::vector<Rank>& of) {
    return mesh_lines({{"replica", copies}, {"ep", serving.ep}, {"etp", tp}}, of);
  };
  std::vector<Rank> firsts;
  for (std::size_t i = 0; i < ranks.size(); i += static_cast<std::size_t>(serving.expert_tp))
    firsts.push_back(ranks[i]);
  stage.experts = mesh(serving.expert_tp, ranks);
  stage.expert_firsts = mesh(1, firsts);
}

void write_serving(const Side& side, const Serving& serving) {
  ServingWriter(side, serving).write();
}

}  // namespace reshard::sim
