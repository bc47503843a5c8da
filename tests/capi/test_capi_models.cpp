// SPDX-License-Identifier: BSD-3-Clause
// A model's layouts from C: what two frameworks make of a config.json.
#include <reshard/reshard.h>
#include <catch2/catch.hpp>

#include <cstdint>
#include <memory>
#include <string>

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
using Catch::Matchers::StartsWith;

namespace {

const std::string kConfig = R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 8,
  "vocab_size": 40, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 2,
  "intermediate_size": 16, "torch_dtype": "bfloat16"})";

reshard_model_texts texts_of(const std::string& config, const char* from, const char* to) {
  reshard_model_texts out = RESHARD_INIT(reshard_model_texts);
  out.config = config.c_str();
  out.config_bytes = static_cast<std::int64_t>(config.size());
  out.from = from;
  out.to = to;
  return out;
}

struct Written {
  std::int32_t code = RESHARD_OK;
  std::string layouts, notes;
};
Written written(const reshard_model_texts& texts) {
  char *layouts = nullptr, *notes = nullptr;
  std::int64_t layouts_bytes = 0, notes_bytes = 0;
  Written out;
  out.code = reshard_model_write_layouts(&texts, &layouts, &layouts_bytes, &notes, &notes_bytes);
  CHECK((layouts == nullptr) == (out.code != RESHARD_OK));
  CHECK((notes == nullptr) == (out.code != RESHARD_OK));
  if (layouts != nullptr) out.layouts.assign(layouts, static_cast<std::size_t>(layouts_bytes));
  if (notes != nullptr) out.notes.assign(notes, static_cast<std::size_t>(notes_bytes));
  reshard_text_free(layouts);
  reshard_text_free(notes);
  return out;
}

void check_refused(const reshard_model_texts& texts, const std::string& what) {
  CHECK(written(texts).code == RESHARD_INPUT_ERROR);
  CHECK_THAT(reshard_last_error(), StartsWith(what));
}

}  // namespace

TEST_CASE("a model's layouts are planned from their text") {
  reshard_model_texts texts = texts_of(kConfig, "megatron tp=2", "vllm tp=4");
  texts.to_ranks = "2-5";
  Written of = written(texts);
  REQUIRE(of.code == RESHARD_OK);
  CHECK_THAT(of.layouts, StartsWith("{\"reshard_check\": 1}\n{\"tensor\": "));
  reshard_plan* plan = nullptr;
  REQUIRE(reshard_plan_create_job_from_text(of.layouts.data(),
                                            static_cast<std::int64_t>(of.layouts.size()), nullptr,
                                            nullptr, &plan) == RESHARD_OK);
  std::unique_ptr<reshard_plan, void (*)(reshard_plan*)> owner(plan, reshard_plan_free);
  reshard_plan_facts facts = RESHARD_INIT(reshard_plan_facts);
  REQUIRE(reshard_plan_get_facts(plan, &facts) == RESHARD_OK);
  CHECK(facts.rank_count == 6);
  // Embedding, final norm and head; nine tensors a layer.
  CHECK(facts.tensor_count == 3 + 2 * 9);
}

TEST_CASE("a dtype changes the layouts, and what is assumed is noted") {
  reshard_model_texts texts = texts_of(kConfig, "megatron tp=2", "vllm tp=2");
  const std::string before = written(texts).layouts;
  texts.dtype = "f32";
  CHECK_THAT(written(texts).layouts, Contains("\"f32\""));
  CHECK(written(texts).layouts != before);
  std::string nested = "{\"model_type\": \"x\", \"text_config\": " + kConfig + "}";
  CHECK_THAT(written(texts_of(nested, "hf tp=2", "hf tp=1")).notes,
             StartsWith("only the weights of text_config, not those of other inputs\nfrom: "));
}

TEST_CASE("what a framework refuses is named by its field") {
  check_refused(texts_of(kConfig, "megatron tp=3", "vllm"), "from: tp: expected ");
  check_refused(texts_of(kConfig, "megatron", "vllm tp=x"), "to: tp: expected a number");
  check_refused(texts_of(kConfig, "megatron", "nemo tp=2"), "to: expected a framework (megatron, ");
  check_refused(texts_of("{}", "megatron", "vllm"), "config: model_type: expected ");
  const std::string nothing = "{}";
  reshard_model_texts texts = texts_of(nothing, "megatron", "vllm");
  texts.config_name = "a/config.json";
  check_refused(texts, "a/config.json: model_type: ");
  texts = texts_of(kConfig, "megatron tp=2", "vllm tp=2");
  texts.ranks = "0-2";
  check_refused(texts, "ranks: expected 2 ranks for 'megatron tp=2', found 3");
  texts.ranks = nullptr;
  texts.to_ranks = "x";
  check_refused(texts, "to_ranks: ");
  texts.to_ranks = nullptr;
  texts.dtype = "fp8";
  check_refused(texts, "dtype: expected fp8 for a model with a weight_block_size");
  texts.dtype = "f7";
  check_refused(texts, "dtype: ");
}

TEST_CASE("texts and places for the results are required") {
  check_refused(texts_of(kConfig, nullptr, "vllm"), "from: expected a pointer, found NULL");
  check_refused(texts_of(kConfig, "vllm", nullptr), "to: expected a pointer, found NULL");
  reshard_model_texts texts = texts_of(kConfig, "hf", "hf");
  texts.config_bytes = -1;
  check_refused(texts, "config_bytes: expected 0 to 16777216, found -1");
  texts.config_bytes = std::int64_t{1} << 40;
  check_refused(texts, "config_bytes: ");
  texts.config = nullptr;
  check_refused(texts, "config: expected a pointer");
  texts = texts_of(kConfig, "hf", "hf");
  texts.reserved = 1;
  check_refused(texts, "texts.reserved: expected 0, found 1");
  texts.reserved = 0;
  char* text = nullptr;
  std::int64_t bytes = 0;
  CHECK(reshard_model_write_layouts(&texts, &text, &bytes, nullptr, &bytes) == RESHARD_INPUT_ERROR);
  CHECK_THAT(reshard_last_error(), Equals("notes: expected a pointer, found NULL"));
  CHECK(reshard_model_write_layouts(nullptr, &text, &bytes, &text, &bytes) == RESHARD_INPUT_ERROR);
  CHECK(text == nullptr);
}
