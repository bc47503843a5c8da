// SPDX-License-Identifier: BSD-3-Clause
// Files of roles: whatever they say, a framework has every element of the model or refuses it.
#include <catch2/catch.hpp>

#include <set>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "sim/models/frameworks/framework.h"
#include "sim/models/frameworks/needed_parts.h"
#include "sim/models/transfer.h"
#include "sim/models/weights/roles.h"
#include "tests/sim/models/small_models.h"

using namespace reshard;
using namespace reshard::sim;
using namespace reshard::test;

namespace {

constexpr const char* kSides[] = {"megatron tp=2",   "megatron tp=2 spec=local optimizer",
                                  "fsdp2 dp=2 tp=2", "fsdp1 dp=2",
                                  "vllm tp=2",       "hf tp=2"};

void give(Model& model, const std::string& roles, const std::vector<FileTensor>& tensors = {}) {
  apply_roles(parse_roles(roles, "r"), tensors, model, "r");
}

// "" if the side has all, else the tensor that it lost or why it is refused.
std::string lost_by(const Model& model, const std::string& side) {
  try {
    ModelLayouts layouts = layouts_of(transfer_text(model, {{"whole"}, {side}}).lines);
    std::string lost = lost_tensor(layouts, *layouts.destination);
    return lost.empty() ? "" : "lost " + lost;
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string refusal(const std::string& family, const std::string& side, const std::string& roles,
                    const std::vector<FileTensor>& tensors = {}) {
  Model model = small_model(family);
  try {
    give(model, roles, tensors);
  } catch (const InputError& error) {
    return error.what();
  }
  return lost_by(model, side);
}

// A name with '*' for the number of the layer.
std::set<std::string> patterns_of(const Model& model) {
  std::set<std::string> out;
  model.for_each([&](const Weight& weight) {
    std::string name = weight.name;
    if (std::size_t at = name.find(".1."); at != std::string::npos) name.replace(at, 3, ".*.");
    if (name.find(".0.") == std::string::npos) out.insert(name);
  });
  return out;
}

}  // namespace

TEST_CASE("No role of any weight makes a framework lose a tensor") {
  int accepted = 0;
  for (const char* family : {"llama", "deepseek_v3", "gpt_oss", "phi3"}) {
    const Model whole = small_model(family);
    for (const std::string& pattern : patterns_of(whole))
      for (int role = 0; role < kRoleCount; ++role) {
        const std::string roles =
            fmt::format(R"({{"{}": "{}"}})", pattern, text(static_cast<Role>(role)));
        Model model = whole;
        try {
          give(model, roles);
        } catch (const InputError&) {
          continue;
        }
        for (const char* side : kSides) {
          const std::string found = lost_by(model, side);
          accepted += found.empty() ? 1 : 0;
          // The optimizer's note says so.
          if (found.starts_with("lost ") && !found.ends_with("e_score_correction_bias"))
            FAIL_CHECK(family << ", " << side << ", " << roles << ": " << found);
        }
      }
  }
  CHECK(accepted > 1000);
}

TEST_CASE("A role that a framework needs is refused by the name of the weight") {
  CHECK(
      refusal("llama", "megatron tp=2", R"({"model.layers.*.self_attn.o_proj.weight": "whole"})") ==
      "--to: model.layers.0.self_attn.o_proj.weight: expected attention out, which megatron "
      "needs, found whole in the file of roles");
  CHECK(refusal("llama", "vllm tp=2", R"({"model.layers.*.self_attn.q_proj.weight": "column"})") ==
        "--to: model.layers.0.self_attn.q_proj.weight: expected query, with which vllm joins "
        "model.layers.0.self_attn.k_proj.weight, found column in the file of roles");
  CHECK(refusal("qwen2_moe", "hf tp=2",
                R"({"model.layers.*.mlp.experts.gate_proj.weight": "whole"})") ==
        "--to: model.layers.0.mlp.experts.gate_proj.weight: expected a role that is cut as "
        "model.layers.0.mlp.experts.up_proj.weight (expert up), with which it is one parameter, "
        "found whole in the file of roles");
  CHECK(refusal("llama", "whole", R"({"model.layers.*.self_attn.k_proj.weight": "query"})") ==
        "r: model.layers.0.self_attn.k_proj.weight: expected a role that no other weight of its "
        "layer has, found query, which is that of model.layers.0.self_attn.q_proj.weight");
  // Where nothing is joined, a weight may be cut otherwise.
  CHECK(
      refusal("llama", "fsdp2 dp=2 tp=2", R"({"model.layers.*.self_attn.q_proj.weight": "whole"})")
          .empty());
  CHECK(refusal("llama", "vllm tp=2", R"({"model.layers.*.self_attn.o_proj.weight": "whole"})")
            .empty());
}

TEST_CASE("A tensor that a file of roles adds has a place in its layer, or is refused") {
  const std::string bias = "model.layers.0.self_attn.q_proj.bias";
  const std::vector<FileTensor> one{{bias, Shape{8}}};
  CHECK(
      refusal("llama", "vllm tp=2", R"({"model.layers.*.self_attn.q_proj.bias": "query"})", one) ==
      "--to: " + bias + " (query): expected key next to it, with which vllm joins it, found none");
  CHECK(refusal("llama", "vllm tp=2", R"({"model.layers.*.self_attn.q_proj.bias": "query"})",
                {{bias, Shape{6}}}) == "r: " + bias + ": expected 8 rows for query, found [6]");
  CHECK(refusal("llama", "vllm tp=2", R"({"x.*": "column"})", {{"x.y", Shape{}}}) ==
        "r: x.y: expected whole for a tensor without dims, found column");
  CHECK(refusal("llama", "whole", R"({"x.*": "key"})", {{"x.y", Shape{4, 8}}}) ==
        "r: x.y: expected whole, column or row for a tensor outside of layers, found key");
  CHECK(refusal("llama", "megatron tp=2", R"({"model.layers.*.r.weight": "router"})",
                {{"model.layers.0.r.weight", Shape{4, 8}}}) ==
        "--to: model.layers.0.r.weight: expected a role that megatron has a buffer for, found "
        "router");
  // The bias of what is cut by columns is whole.
  Model model = small_model("llama");
  give(model, R"({"model.layers.*.x.*": "row"})",
       {{"model.layers.0.x.weight", Shape{4, 8}}, {"model.layers.0.x.bias", Shape{4}}});
  CHECK(model.layers[0].weights.back().role == Role::Whole);
  // An embedding that is the head, and a tensor beside it.
  Model tied = small_model("llama", R"(, "tie_word_embeddings": true)");
  give(tied, R"({"x.*": "whole"})", {{"x.y", Shape{4}}});
  ModelLayouts layouts = layouts_of(transfer_text(tied, {{"whole"}, {"vllm pp=2"}}).lines);
  CHECK(lost_tensor(layouts, *layouts.destination).empty());
  CHECK_THROWS_WITH(give(tied, R"({"lm_head.weight": "whole"})"),
                    Catch::StartsWith("r: lm_head.weight: expected no other role than head, as it "
                                      "is the embedding"));
}

TEST_CASE("A file of roles is an object") {
  CHECK_THROWS_WITH(parse_roles("null", "r"),
                    "r: expected an object of roles by pattern, found null");
  CHECK_THROWS_WITH(parse_roles("[]", "r"), Catch::StartsWith("r: expected an object"));
}

TEST_CASE("A side that has written no buffer of a tensor is refused") {
  Model model = small_model("llama");
  Parallelism options("vllm", "--to");
  SideLines lines("to", false);
  std::vector<std::string> notes;
  Side side{model, options, {Rank{0}}, lines, notes};
  MeshLines mesh = mesh_lines({{"tp", 1}}, side.ranks);
  model.for_each([&](const Weight& weight) {
    if (weight.role != Role::FinalNorm) lines.buffer(weight.name, mesh, {weight.name}, weight);
  });
  CHECK_THROWS_WITH(require_all(side),
                    "--to: model.norm.weight: expected a role that vllm has a buffer for, found "
                    "final norm");
}

TEST_CASE("Next to the optimizer's copies lies what is no parameter") {
  TransferText text =
      transfer_text(small_model("deepseek_v3"), {{"megatron optimizer"}, {"whole"}});
  ModelLayouts layouts = layouts_of(text.lines);
  CHECK(lost_tensor(layouts, *layouts.source).empty());
}
