// SPDX-License-Identifier: BSD-3-Clause
// Megatron-Core: its tensors (core/transformer) on two grids of the same ranks
// (core/parallel_state.py): tp, cp, dp, pp for dense layers and etp, ep, edp, pp for experts.
#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/models/frameworks/flat_buckets.h"
#include "sim/models/frameworks/framework.h"
#include "sim/models/frameworks/megatron_grids.h"
#include "sim/models/layer_stages.h"

namespace reshard::sim {
namespace {

using Axis = MegatronGrids::Axis;
using enum MegatronGrids::Axis;

// Buckets that end only with the stage.
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

class MegatronWriter {
 public:
  explicit MegatronWriter(const Side& side)
      : side_(side), model_(side.model), grids_(megatron_grids(side.model, side.options)) {
    auto& options = side_.options;
    stages_.stages = static_cast<int>(grids_.dense[Pp].size);
    stages_.chunks = static_cast<int>(options.number("vpp", 1, 4096));
    stages_.first = static_cast<int>(options.number("first", 0, 4096));
    stages_.last = static_cast<int>(options.number("last", 0, 4096));
    stages_.counts_embedding = options.flag("embedding-in-split");
    stages_.counts_loss = options.flag("loss-in-split");
    layout_ = options.word("layout", "");
    stages_.layout = layout_;
    has_te_ = options.choice("spec", {"te", "local"}) == "te";
    is_grouped_ = options.choice("experts", {"each", "grouped"}) == "grouped";
    vocabulary_multiple_ = options.number("vocab-divisible", 128) * tp();
    has_optimizer_ = options.flag("optimizer");
    read_bucket_size();
  }

  void write() {
    assume_last();
    StageSplit split;
    try {
      split = megatron_stages(stages_, static_cast<int>(model_.layers.size()));
    } catch (const InputError& error) {
      throw error.in(side_.options.field());
    }
    for (std::size_t stage = 0; stage < split.size(); ++stage) {
      set_meshes(static_cast<std::int64_t>(stage));
      const std::vector<StageChunk>& chunks = split[stage];
      for (std::size_t c = 0; c < chunks.size(); ++c) {
        prefix_ = chunks.size() > 1 ? fmt::format("model{}.", c) : "";
        // Buffers that buckets flatten: every stage has layers 0, 1, .. of its own.
        flattened_ = fmt::format("stage{}.{}", stage, prefix_);
        write_chunk(chunks[c], split.size() > 1);
        // Only in the first chunk of the first stage is there more than one bucket
        // (distributed_data_parallel.py, training.py).
        if (has_optimizer_) write_buckets(stage == 0 && c == 0 ? most_in_bucket_ : kNoLimit);
      }
    }
  }

 private:
  // Where a parameter is registered: its layer, its place there, its place among those of a kind.
  using RegistrationOrder = std::tuple<std::int64_t, int, std::int64_t>;

  std::int64_t tp() const { return grids_.dense[Tp].size; }
  // The number of ranks that share the optimizer state of dense layers.
  std::int64_t data_ranks() const { return grids_.dense[Dp].size * grids_.dense[Cp].size; }

  void read_bucket_size() {
    Parallelism& options = side_.options;
    const bool is_single = options.flag("one-bucket");
    most_in_bucket_ = options.number(
        "bucket-size", std::max<std::int64_t>(40'000'000, 1'000'000 * grids_.dense[Dp].size),
        1LL << 40);
    for (const char* key : {"bucket-size", "one-bucket"})
      if (!has_optimizer_ && options.has(key)) options.fail(key, "optimizer next to it");
    if (is_single && options.has("bucket-size"))
      options.fail("bucket-size", "no one-bucket next to it");
    if (is_single) most_in_bucket_ = kNoLimit;
    if (!has_optimizer_) return;
    side_.notes.push_back(
        "f32 copies of parameters in the order in which Megatron-LM registers them, in buckets of "
        "one optimizer instance");
    if (!is_single)
      side_.notes.push_back(
          "--overlap-grad-reduce is assumed: without it a stage has one bucket (one-bucket)");
  }

  // If stages do not share the layers evenly, Megatron requires the numbers to be stated.
  void assume_last() {
    const int layers = static_cast<int>(model_.layers.size()), n = stages_.stages;
    if (layers % n == 0 || stages_.first > 0 || stages_.last > 0 || stages_.chunks > 1 ||
        stages_.counts_embedding || stages_.counts_loss || !layout_.empty())
      return;
    const int last = layers - (n - 1) * ((layers + n - 1) / n);
    if (last < 1) return;
    stages_.last = last;
    side_.notes.push_back(fmt::format(
        "last={} is assumed, as {} stages do not share {} layers evenly; first=, last=, "
        "embedding-in-split, loss-in-split and layout= say otherwise",
        last, n, layers));
  }

  void set_meshes(std::int64_t stage) {
    auto mesh = [&](const MegatronGrids::Grid& grid, const std::array<std::string_view, 3>& names,
                    const std::array<Axis, 3>& axes) {
      std::vector<Rank> ranks;
      const std::int64_t n0 = grid[axes[0]].size, n1 = grid[axes[1]].size, n2 = grid[axes[2]].size;
      for (std::int64_t i = 0; i < n0; ++i)
        for (std::int64_t j = 0; j < n1; ++j)
          for (std::int64_t k = 0; k < n2; ++k)
            ranks.push_back(side_.ranks[static_cast<std::size_t>(
                MegatronGrids::rank(grid, {i, j, k}, stage, axes))]);
      return mesh_lines({{names[0], n0}, {names[1], n1}, {names[2], n2}}, ranks);
    };
    dense_ = mesh(grids_.dense, {"dp", "cp", "tp"}, {Dp, Cp, Tp});
    if (model_.experts > 0) expert_ = mesh(grids_.expert, {"edp", "ep", "etp"}, {Dp, Ep, Tp});
  }

  void write_chunk(const StageChunk& chunk, bool has_stages) {
    if (chunk.has_embedding)
      vocabulary("embedding.word_embeddings.weight", model_.embedding.weights.front());
    for (std::size_t i = 0; i < chunk.layers.size(); ++i)
      write_layer(model_.layers[static_cast<std::size_t>(chunk.layers[i])],
                  fmt::format("decoder.layers.{}.", i));
    if (!chunk.has_head) return;
    for (const Weight& weight : model_.head.weights)
      if (weight.role == Role::FinalNorm)
        whole("decoder.final_layernorm.weight", weight);
      else if (weight.role != Role::Head)
        other("", model_.head, weight);
      else if (has_stages || !model_.is_tied)
        vocabulary("output_layer.weight", weight);
  }

  // `elements` is the number per rank.
  void put(const std::string& name, const Weight& weight, std::string_view placements,
           std::int64_t elements, const std::vector<std::string>& blocks = {}) {
    const std::vector<std::string> of = blocks.empty() ? std::vector{weight.name} : blocks;
    // The router's bias is no parameter: the optimizer has no copy of it.
    if (!has_optimizer_ || weight.role == Role::RouterBias)
      return side_.lines.buffer(prefix_ + name, dense_, of, weight, placements);
    side_.lines.named(flattened_ + name, dense_, of, {}, placements);
    const bool is_shared = model_.is_tied && stages_.stages > 1 &&
                           (weight.role == Role::Embedding || weight.role == Role::Head);
    parameters_.push_back({{flattened_ + name, elements, is_shared}, order_of(name), false});
  }
  static std::int64_t elements_of(const Weight& weight) { return element_count(weight.shape); }
  void whole(const std::string& name, const Weight& weight) {
    put(name, weight, "", elements_of(weight));
  }
  void column(const std::string& name, const Weight& weight) {
    require_divides(side_, "tp", tp(), weight.shape[0], "rows of " + weight.name);
    put(name, weight, "RRS(0)", elements_of(weight) / tp());
  }
  void row(const std::string& name, const Weight& weight) {
    const int last = weight.shape.size() - 1;
    require_divides(side_, "tp", tp(), weight.shape[last], "columns of " + weight.name);
    put(name, weight, fmt::format("RRS({})", last), elements_of(weight) / tp());
  }
  void vocabulary(const std::string& name, const Weight& weight) {
    const std::int64_t rows =
        (weight.shape[0] + vocabulary_multiple_ - 1) / vocabulary_multiple_ * vocabulary_multiple_;
    put(name, weight, "RRS(0)", rows / tp() * weight.shape[1],
        {fmt::format("{} pad{}", weight.name, vocabulary_multiple_)});
  }

  // In the order of registration: the embedding, the layers, the final norm, the head.
  RegistrationOrder order_of(std::string_view name) const {
    constexpr std::string_view kLayers = "decoder.layers.";
    constexpr std::int64_t kLast = std::int64_t{1} << 32;
    if (name.starts_with("embedding.")) return {-1, 0, 0};
    if (!name.starts_with(kLayers))
      return {name.starts_with("output_layer") ? kLast + 1 : kLast, 0, 0};
    name.remove_prefix(kLayers.size());
    return {std::stoll(std::string(name)), registered_at(name.substr(name.find('.') + 1)), 0};
  }

  // Experts have buffers of their own, shared by the ranks that have the same ones.
  void write_buckets(std::int64_t most) {
    std::stable_sort(parameters_.begin(), parameters_.end(),
                     [](const Registered& a, const Registered& b) { return a.order < b.order; });
    FlatBuckets dense, experts;
    for (Registered& each : parameters_)
      (each.is_expert ? experts : dense).add(std::move(each.parameter));
    parameters_.clear();
    const std::string_view dtype =
        model_.embedding.weights.front().dtype == DType::F32 ? "" : "f32";
    // Ranks share a bucket in ascending order.
    std::vector<std::string> axes{"dp", "cp"};
    if (grids_.dense[Dp].stride < grids_.dense[Cp].stride) std::swap(axes[0], axes[1]);
    dense.write(prefix_ + "optimizer.bucket", axes, data_ranks(), most, dtype, side_.lines);
    experts.write(prefix_ + "optimizer.expert_bucket", {"edp"}, grids_.expert[Dp].size, most, dtype,
                  side_.lines);
  }

  void write_layer(const WeightGroup& layer, const std::string& to) {
    const std::string own = to + "self_attention.";
    const bool is_mla = layer.has(Role::KeyValueUp), has_experts = layer.has(Role::ExpertGate);
    if (const Weight* norm = layer.find(Role::InputNorm))
      whole(
          has_te_ && !is_mla ? own + "linear_qkv.layer_norm_weight" : to + "input_layernorm.weight",
          *norm);
    if (const Weight* norm = layer.find(Role::MlpNorm))
      whole(to + (has_te_ && !has_experts ? "mlp.linear_fc1.layer_norm_weight"
                                          : "pre_mlp_layernorm.weight"),
            *norm);
    if (const Weight* norm = layer.find(Role::PostAttentionNorm))
      whole(own + "linear_proj.post_layernorm.weight", *norm);
    if (const Weight* norm = layer.find(Role::PostMlpNorm))
      whole(to + "mlp.linear_fc2.post_layernorm.weight", *norm);
    if (is_mla)
      write_mla(layer, own);
    else
      write_attention(layer, own);
    row(own + "linear_proj.weight", *layer.find(Role::AttentionOut));
    if (const Weight* bias = layer.find(Role::AttentionOut, true))
      whole(own + "linear_proj.bias", *bias);
    write_mlp(layer, Role::Gate, to + "mlp.");
    write_mlp(layer, Role::SharedGate, to + "mlp.shared_experts.");
    if (const Weight* gate = layer.find(Role::SharedSwitch))
      whole(to + "mlp.shared_experts.gate_weight", *gate);
    if (has_experts) write_experts(layer, to + "mlp.");
    for (const Weight& weight : layer.weights) other(to, layer, weight);
  }

  // For each KV head its query heads, then k and v; cut by rows whether or not they end with a head
  // (core/transformer/attention.py).
  void write_attention(const WeightGroup& layer, const std::string& own) {
    for (bool bias : {false, true}) {
      const Weight *q = layer.find(Role::Query, bias), *k = layer.find(Role::Key, bias),
                   *v = layer.find(Role::Value, bias);
      if (q == nullptr || k == nullptr || v == nullptr) continue;
      require_divides(side_, "tp", tp(), model_.heads, "attention heads");
      require_divides(side_, "tp", tp(), q->shape[0] + k->shape[0] + v->shape[0],
                      "rows of linear_qkv");
      put(own + (bias ? "linear_qkv.bias" : "linear_qkv.weight"), *q, "RRS(0)",
          (elements_of(*q) + elements_of(*k) + elements_of(*v)) / tp(),
          {fmt::format("{}:{} {}:1 {}:1 x{}", q->name, model_.heads / model_.kv_heads, k->name,
                       v->name, model_.head_dim)});
    }
    if (const Weight* norm = layer.find(Role::QueryNorm)) whole(own + "q_layernorm.weight", *norm);
    if (const Weight* norm = layer.find(Role::KeyNorm)) whole(own + "k_layernorm.weight", *norm);
    if (const Weight* sinks = layer.find(Role::Sinks))
      column(own + "core_attention.softmax_offset", *sinks);
  }

  // Up projections are cut by heads. Down projections are whole with Transformer Engine and cut by
  // rows without it (core/transformer/multi_latent_attention.py).
  void write_mla(const WeightGroup& layer, const std::string& own) {
    auto down = [&](std::string_view name, const Weight& weight) {
      if (has_te_)
        whole(own + std::string(name), weight);
      else
        column(own + std::string(name), weight);
    };
    require_divides(side_, "tp", tp(), model_.heads, "attention heads");
    if (const Weight* query = layer.find(Role::Query)) {
      column(own + "linear_q_proj.weight", *query);
    } else {
      down("linear_q_down_proj.weight", *layer.find(Role::QueryLatent));
      column(own + "linear_q_up_proj.weight", *layer.find(Role::QueryUp));
      whole(own + (has_te_ ? "linear_q_up_proj.layer_norm_weight" : "q_layernorm.weight"),
            *layer.find(Role::QueryLatentNorm));
    }
    down("linear_kv_down_proj.weight", *layer.find(Role::KeyValueLatent));
    column(own + "linear_kv_up_proj.weight", *layer.find(Role::KeyValueUp));
    whole(own + (has_te_ ? "linear_kv_up_proj.layer_norm_weight" : "kv_layernorm.weight"),
          *layer.find(Role::KeyValueLatentNorm));
  }

  // Gate and up are each cut, then joined (partition_stride 2).
  void write_mlp(const WeightGroup& layer, Role gate, const std::string& to) {
    auto role = [&](int i) { return static_cast<Role>(static_cast<int>(gate) + i); };
    for (bool bias : {false, true}) {
      const Weight *first = layer.find(gate, bias), *second = layer.find(role(1), bias);
      if (first == nullptr || second == nullptr) continue;
      require_divides(side_, "tp", tp(), first->shape[0], "rows of " + first->name);
      put(to + (bias ? "linear_fc1.bias" : "linear_fc1.weight"), *first, "RRS(0)",
          (elements_of(*first) + elements_of(*second)) / tp(), {first->name, second->name});
    }
    if (const Weight* down = layer.find(role(2))) row(to + "linear_fc2.weight", *down);
    if (const Weight* bias = layer.find(role(2), true)) whole(to + "linear_fc2.bias", *bias);
  }

  void write_experts(const WeightGroup& layer, const std::string& to) {
    const std::int64_t ep = grids_.expert[Ep].size, etp = grids_.expert[Tp].size;
    require_divides(side_, "ep", ep, model_.experts, "experts");
    whole(to + "router.weight", *layer.find(Role::Router));
    if (const Weight* bias = layer.find(Role::Router, true)) whole(to + "router.bias", *bias);
    if (const Weight* bias = layer.find(Role::RouterBias)) whole(to + "router.expert_bias", *bias);
    for (bool bias : {false, true}) {
      const Weight *gate = layer.find(Role::ExpertGate, bias),
                   *up = layer.find(Role::ExpertUp, bias),
                   *down = layer.find(Role::ExpertDown, bias);
      if (gate == nullptr || up == nullptr || down == nullptr) continue;
      require_divides(side_, "etp", etp, gate->shape[1], "rows of " + gate->name);
      expert(to, "linear_fc1", {gate->name, up->name}, *gate, "RS(0)S(1)", 1);
      expert(to, "linear_fc2", {down->name}, *down, bias ? "RS(0)R" : "RS(0)S(2)", 0);
    }
  }

  // Either weight0, weight1, ... for the rank's own experts, or all of them transposed in one
  // buffer.
  void expert(const std::string& to, std::string_view name, const std::vector<std::string>& blocks,
              const Weight& weight, std::string_view placements, int dim) {
    BufferExtras extras{.dim = dim};
    const std::string& prefix = has_optimizer_ ? flattened_ : prefix_;
    const char* const kind = weight.is_bias() ? "bias" : "weight";
    std::string buffer =
        has_te_ ? fmt::format("{}{}experts.{}.{}{{}}", prefix, to, name, kind)
                : fmt::format("{}{}experts.local_experts.{{}}.{}.{}", prefix, to, name, kind);
    if (is_grouped_) {
      if (weight.is_bias()) side_.options.fail("experts", "each, for experts with biases");
      extras.order = "[0, 2, 1]";
      buffer = fmt::format("{}{}experts.{}", prefix, to, dim == 1 ? "weight1" : "weight2");
    } else {
      extras.each = "local";
    }
    if (!has_optimizer_)
      return side_.lines.buffer(buffer, expert_, blocks, weight, placements, extras);
    side_.lines.named(buffer, expert_, blocks, extras, placements);
    const std::int64_t etp = placements.ends_with('R') ? 1 : grids_.expert[Tp].size,
                       local = is_grouped_ ? 1 : model_.experts / grids_.expert[Ep].size,
                       all = elements_of(weight) / grids_.expert[Ep].size / etp *
                             static_cast<std::int64_t>(blocks.size());
    for (std::int64_t i = 0; i < local; ++i) {
      std::string own = buffer;
      if (!is_grouped_) own.replace(own.find("{}"), 2, std::to_string(i));
      RegistrationOrder place = order_of(std::string_view(own).substr(prefix.size()));
      // weight0, bias0, weight1, ..; or both projections of an expert, then those of the next.
      std::get<2>(place) = 2 * i + (weight.is_bias() ? 1 : 0);
      if (!has_te_) std::get<2>(place) += 2 * i + (dim == 0 ? 2 : 0);
      parameters_.push_back({{own, all / local, false}, place, true});
    }
  }

  // Writes a weight that a file of roles added.
  void other(const std::string& to, const WeightGroup& group, const Weight& weight) {
    const std::string name = to + weight.name.substr(group.prefix.size());
    if (weight.role == Role::Whole) whole(name, weight);
    if (weight.role == Role::Column) column(name, weight);
    if (weight.role == Role::Row) row(name, weight);
  }

  struct Registered {
    FlatBuckets::Parameter parameter;
    RegistrationOrder order;
    bool is_expert;
  };

  const Side& side_;
  const Model& model_;
  MegatronGrids grids_;
  MegatronStages stages_;
  std::string layout_, prefix_, flattened_;
  bool has_te_ = true, is_grouped_ = false, has_optimizer_ = false;
  std::int64_t vocabulary_multiple_ = 128, most_in_bucket_ = 0;
  std::vector<Registered> parameters_;  // of the model chunk
  MeshLines dense_, expert_;
};

}  // namespace

std::int64_t megatron_ranks(const Model& model, Parallelism& options) {
  return megatron_grids(model, options).ranks();
}

void write_megatron(const Side& side) { MegatronWriter(side).write(); }

}  // namespace reshard::sim
