// SPDX-License-Identifier: BSD-3-Clause
// Weights of published models: their sums are the numbers of parameters that the models are known
// for.
#include <catch2/catch.hpp>

#include <string>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/models/weights/config.h"
#include "sim/models/weights/model_source.h"
#include "sim/models/weights/roles.h"
#include "tests/sim/models/small_models.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

std::int64_t parameters(const Model& model) {
  std::int64_t out = 0;
  model.for_each([&](const Weight& weight) {
    if (weight.role != Role::Head || !model.is_tied) out += element_count(weight.shape);
  });
  return out;
}

Model shipped(const std::string& name) { return read_model({"traces/models/" + name + ".json"}); }

std::string with(const std::string& fields) {
  return R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 8,
             "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 16,
             "vocab_size": 32, "torch_dtype": "bfloat16")" +
         fields + "}";
}

std::string refusal(const std::string& text) {
  try {
    parse_config(text, "c");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("The weights of shipped models are as many as they have parameters") {
  CHECK(parameters(shipped("llama3-70b")) == 70'553'706'496);
  CHECK(parameters(shipped("qwen3-235b")) == 235'093'634'560);
  // 671,026,404,352 as published, and the corrections of 58 routers.
  CHECK(parameters(shipped("deepseek-v3")) == 671'026'404'352 + 58 * 256);
  CHECK(parameters(shipped("gpt-oss-120b")) == 116'829'156'672);
}

TEST_CASE("What a config does not have is refused by its field") {
  CHECK(refusal(with("")).empty());
  CHECK(refusal(R"({"model_type": "bert"})").starts_with("c: model_type: expected llama, "));
  CHECK(refusal(R"({"model_type": "llama"})") ==
        "c: hidden_size: expected an integer from 1 to 16777216, found no such field");
  CHECK(refusal(with(R"(, "head_dim": "x")")) ==
        "c: head_dim: expected an integer from 0 to 16777216, found 'x'");
  CHECK(refusal("[1]").starts_with("c: expected the object of a config.json"));
  std::string three = with("");
  three.replace(three.find(": 2, \"intermediate"), 3, ": 3");
  CHECK(refusal(three) ==
        "c: num_key_value_heads: expected a number that divides 4 attention heads, found 3");
}

TEST_CASE("Biases, tied weights and dtypes are as the config says") {
  Model model = parse_config(
      with(R"(, "attention_bias": true, "mlp_bias": true, "tie_word_embeddings": true)"), "c");
  CHECK(model.is_tied);
  CHECK(model.layers[1].find(Role::Key, true)->shape == Shape{4});
  CHECK(model.layers[0].find(Role::Down, true)->shape == Shape{8});
  CHECK(model.layers[0].find(Role::Query)->dtype == DType::BF16);
  CHECK(model.notes.empty());
}

TEST_CASE("A dtype under two names is one dtype") {
  CHECK(parse_config(with(R"(, "dtype": "bfloat16")"), "c").notes.empty());
  CHECK(refusal(with(R"(, "dtype": "float32")")) ==
        "c: torch_dtype: expected f32, as dtype says, found bf16");
}

TEST_CASE("Fields whose defaults differ between families must be there") {
  for (const char* key : {"first_k_dense_replace", "n_shared_experts", "q_lora_rank"})
    for (const char* family : {"deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe"}) {
      if (std::string(family) == "glm4_moe" && std::string(key) == "q_lora_rank") continue;
      std::string config = test::small_config(family);
      const std::size_t at = config.find(fmt::format("\"{}\"", key));
      REQUIRE(at != std::string::npos);
      config.erase(at, config.find(',', at) + 1 - at);
      CHECK(refusal(config) ==
            fmt::format("c: {}: expected an integer from 0, or null, found no such field", key));
    }
  std::string null = test::small_config("deepseek_v3");
  null.replace(null.find("\"q_lora_rank\": 6"), 16, "\"q_lora_rank\": null");
  CHECK(parse_config(null, "c").layers[0].find(Role::Query) != nullptr);
}

TEST_CASE("Biases are those that the family's own field asks for, and no other field") {
  auto has = [](const char* family, const char* fields) {
    Model model = test::small_model(family, fields);
    return model.layers[1].find(Role::Query, true) != nullptr;
  };
  CHECK(has("gpt_oss", ""));
  CHECK_FALSE(has("gpt_oss", R"(, "attention_bias": false)"));
  CHECK(has("qwen2_moe", ""));
  CHECK_FALSE(has("qwen2_moe", R"(, "qkv_bias": false)"));
  CHECK(has("qwen2", R"(, "qkv_bias": true)"));
  CHECK(refusal(test::small_config("qwen2", R"(, "qkv_bias": false)")) ==
        "c: qkv_bias: expected true, as qwen2 has biases of q, k and v, found false");
  CHECK(refusal(test::small_config("mixtral", R"(, "attention_bias": true)")) ==
        "c: attention_bias: expected false, as mixtral has no biases of q, k and v, found true");
  CHECK(refusal(test::small_config("qwen3", R"(, "mlp_bias": true)")) ==
        "c: mlp_bias: expected false, as qwen3 has no such biases, found true");
  CHECK(refusal(test::small_config("deepseek_v3", R"(, "attention_bias": true)")) ==
        "c: attention_bias: expected false with MLA, found true");
}

TEST_CASE("FP8 by blocks gives matrices scales, and other quantisations a note") {
  Model model = shipped("deepseek-v3");
  CHECK(model.scale_block == std::array<std::int64_t, 2>{128, 128});
  quantise(model);
  CHECK(model.layers[5].find(Role::ExpertUp)->dtype == DType::F8E4M3);
  CHECK(model.layers[5].find(Role::Router)->dtype == DType::BF16);
  CHECK(!shipped("gpt-oss-120b").scale_block);
  CHECK(shipped("gpt-oss-120b").notes.size() == 1);
}

TEST_CASE("Modules that a quantisation leaves out have no scales") {
  auto fp8 = [](const std::string& more) {
    return with(R"(, "quantization_config": {"quant_method": "fp8", "weight_block_size": [4, 4])" +
                more + "}");
  };
  for (const char* key : {"modules_to_not_convert", "ignored_layers"}) {
    Model model = parse_config(
        fp8(fmt::format(
            R"(, "{}": ["lm_head", "model.layers.0.self_attn.o_proj", "model.layers.1"])", key)),
        "c");
    quantise(model);
    INFO(key);
    CHECK(model.layers[0].find(Role::AttentionOut)->dtype == DType::BF16);
    CHECK(model.layers[0].find(Role::Query)->dtype == DType::F8E4M3);
    CHECK(model.layers[1].find(Role::Query)->dtype == DType::BF16);
  }
  // "mlp.gate" is not "mlp.gate_proj", and a name of one module is that of every layer.
  Model some =
      parse_config(fp8(R"(, "ignored_layers": ["model.layers.0.mlp.gate", "down_proj"])"), "c");
  quantise(some);
  CHECK(some.layers[0].find(Role::Gate)->dtype == DType::F8E4M3);
  CHECK(some.layers[1].find(Role::Down)->dtype == DType::BF16);
  Model half = parse_config(fp8(R"(, "ignored_layers": ["model.layers.0.self_attn.k_proj"])"), "c");
  quantise(half);
  CHECK(half.layers[0].find(Role::Key)->dtype == DType::BF16);
  CHECK(half.layers[0].find(Role::Query)->dtype == DType::F8E4M3);
  CHECK(refusal(fp8(R"(, "ignored_layers": ["model.layers.0.mlp.experts.3"])")) ==
        "c: ignored_layers: expected all experts of a layer or none, found "
        "'model.layers.0.mlp.experts.3'");
  for (const char* pattern : {"re:.*o_proj", "model.layers.*.mlp"})
    CHECK(refusal(fp8(fmt::format(R"(, "ignored_layers": ["{}"])", pattern))) ==
          fmt::format("c: ignored_layers: expected names of modules, as patterns are not read, "
                      "found '{}'",
                      pattern));
  CHECK(refusal(fp8(R"(, "ignored_layers": "lm_head")"))
            .starts_with("c: ignored_layers: expected a list of names of modules, found"));
  CHECK(refusal(with(R"(, "quantization_config": 7)")) ==
        "c: quantization_config: expected an object, found 7");
}

TEST_CASE("A file of roles changes what weights are for") {
  Model model = parse_config(with(""), "c");
  apply_roles(parse_roles(R"({"model.layers.*.mlp.up_proj.weight": "whole"})", "r"), {}, model,
              "r");
  CHECK(model.layers[1].find(Role::Whole)->name == "model.layers.1.mlp.up_proj.weight");
  CHECK(model.layers[1].find(Role::Up) == nullptr);
  apply_roles(parse_roles(R"({"model.layers.*.extra": "column"})", "r"),
              {{"model.layers.1.extra", Shape{6, 8}}}, model, "r");
  CHECK(model.layers[1].find(Role::Column)->shape == Shape{6, 8});
  CHECK_THROWS_WITH(apply_roles(parse_roles(R"({"nothing.*": "row"})", "r"), {}, model, "r"),
                    "r: 'nothing.*': expected a name of c, found none");
  CHECK_THROWS_AS(parse_roles(R"({"a": "columns"})", "r"), InputError);
}

TEST_CASE("A checkpoint must have the weights of its config") {
  Model model = parse_config(with(""), "c");
  std::vector<FileTensor> all;
  model.for_each([&](const Weight& weight) { all.push_back({weight.name, weight.shape}); });
  CHECK_NOTHROW(check_file(model, all, "f"));
  std::vector<FileTensor> fewer(all.begin(), all.end() - 1);
  CHECK_THROWS_WITH(check_file(model, fewer, "f"),
                    "f: expected all of lm_head.weight, found 0 of 256 elements");
  all[3].shape = Shape{1, 2};
  CHECK_THROWS_WITH(check_file(model, all, "f"),
                    Catch::EndsWith("expected [4,8], as c says, found [1,2]"));
  all[3].shape.reset();
  all.push_back({"model.layers.0.other.weight", Shape{1}});
  CHECK_THROWS_WITH(check_file(model, all, "f"), Catch::Contains("'model.layers.0.other.weight'"));
}
