// SPDX-License-Identifier: BSD-3-Clause
// What a config.json and the options of a cache mean, and what is refused, in which words.
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "sim/models/kv/kv_transfer.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// A config with these fields beside the usual ones.
std::string config(const std::string& more) {
  return R"({"num_hidden_layers": 4, "num_attention_heads": 8, "hidden_size": 64)" +
         (more.empty() ? "" : ", " + more) + "}";
}
KvModel model_of(const std::string& more, std::int64_t tokens = 100) {
  return read_kv_model(config(more), "c.json", tokens);
}
std::string model_error(const std::string& more, std::int64_t tokens = 100) {
  return error_of([&] { model_of(more, tokens); });
}

KvSpec spec() {
  KvSpec out;
  out.config_file = "c.json";
  out.config = config(R"("num_key_value_heads": 4, "torch_dtype": "bfloat16")");
  out.tokens = 100;
  out.from = {"tp=4", "", "", 16, 0};
  out.to = {"tp=8", "", "", 0, 0};
  return out;
}
std::string spec_error(const std::function<void(KvSpec&)>& change) {
  KvSpec changed = spec();
  change(changed);
  return error_of([&] { kv_layouts(read_kv_transfer(changed)); });
}
std::string from_error(const std::string& parallel) {
  return spec_error([&](KvSpec& changed) { changed.from.parallel = parallel; });
}
std::string form_error(const std::string& form) {
  return spec_error([&](KvSpec& changed) { changed.from.form = form; });
}
std::string table_error(const std::string& table) {
  return spec_error([&](KvSpec& changed) {
    changed.to.table_file = "t.json";
    changed.to.table = table;
  });
}

bool assumes(const KvModel& model, const std::string& what) {
  return std::any_of(model.assumed.begin(), model.assumed.end(), [&](const std::string& assumed) {
    return assumed.find(what) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("a config says what a token caches") {
  KvModel grouped = model_of(R"("num_key_value_heads": 2, "dtype": "float16")");
  CHECK(grouped.layers == 4);
  CHECK(grouped.heads == 2);
  CHECK(grouped.key_dim == 8);  // hidden_size / num_attention_heads
  CHECK(grouped.value_dim == 8);
  CHECK(grouped.dtype == DType::F16);
  KvModel own_dim = model_of(R"("head_dim": 128, "v_head_dim": 96, "num_key_value_heads": null)");
  CHECK(own_dim.heads == 8);
  CHECK(own_dim.key_dim == 128);
  CHECK(own_dim.value_dim == 96);
  CHECK(!own_dim.dtype);
  CHECK(assumes(own_dim, "a KV head for each head"));
  KvModel latent = model_of(
      R"("kv_lora_rank": 512, "qk_rope_head_dim": 64, "v_head_dim": 128,
         "num_key_value_heads": 8, "num_nextn_predict_layers": 1)");
  CHECK(latent.is_latent());
  CHECK(latent.channels() == 576);
  CHECK(assumes(latent, "1 MTP layer (num_nextn_predict_layers) is not moved"));
  // Of a model of several modalities; the outer object has the dtype.
  KvModel nested = read_kv_model(
      R"({"model_type": "kimi_k25", "dtype": "bfloat16", "vision_config": {"num_hidden_layers": 9},
          "text_config": )" +
          config(R"("model_type": "kimi_k2")") + "}",
      "c.json", 1);
  CHECK(nested.type == "kimi_k2");
  CHECK(nested.layers == 4);
  CHECK(nested.dtype == DType::BF16);
  // A checkpoint with scales for its cache does not say what an engine makes of them.
  CHECK(!model_of(R"("dtype": "bfloat16", "quantization_config": {"kv_cache_scheme": {}})").dtype);
}

TEST_CASE("the dtype that the text's own part states comes before the one outside") {
  auto dtype_of = [](const std::string& outside, const std::string& inside) {
    return read_kv_model(R"({"model_type": "kimi_k25", )" + outside + R"("text_config": )" +
                             config(R"("model_type": "kimi_k2")" + inside) + "}",
                         "c.json", 1)
        .dtype;
  };
  CHECK(dtype_of(R"("torch_dtype": "bfloat16", )", R"(, "dtype": "float16")") == DType::F16);
  CHECK(dtype_of(R"("dtype": "bfloat16", )", R"(, "torch_dtype": "float16")") == DType::F16);
  CHECK(dtype_of(R"("torch_dtype": "bfloat16", )", R"(, "dtype": "auto")") == DType::BF16);
  CHECK_THROWS_WITH(dtype_of("", R"(, "torch_dtype": "float16", "dtype": "bfloat16")"),
                    "c.json: text_config: torch_dtype: expected bf16, as dtype says, found f16");
  CHECK(!dtype_of("", R"(, "dtype": "auto")"));
  CHECK_THROWS_WITH(dtype_of(R"("dtype": "bfloat16", )", R"(, "dtype": "float16")"),
                    Catch::Contains("the same as outside"));
}

TEST_CASE("windows matter only to as many tokens") {
  CHECK(model_error(R"("sliding_window": 100)") ==
        "c.json: sliding_window: expected full attention in every layer, or more than the 100 "
        "tokens, as engines keep different tokens beyond a window, found 100");
  CHECK(assumes(model_of(R"("sliding_window": 101)"), "fewer than sliding_window (101)"));
  CHECK(model_error(R"("sliding_window": 10, "use_sliding_window": false)") == "no error");
  const std::string types =
      R"("layer_types": ["full_attention", "sliding_attention", "full_attention",
                         "sliding_attention"], "sliding_window": )";
  CHECK(model_error(types + "100").substr(0, 24) == "c.json: sliding_window: ");
  CHECK(model_error(types + "101") == "no error");
  CHECK(model_error(types + "null").substr(0, 24) == "c.json: sliding_window: ");
  CHECK(model_error(R"("sliding_window": 10, "layer_types": ["full_attention", "full_attention",
                       "full_attention", "full_attention"])") == "no error");
  CHECK(model_error(R"("layer_types": ["full_attention", "linear_attention", "full_attention",
                       "full_attention"])") ==
        "c.json: layer_types: expected \"full_attention\" for every layer, found "
        "'linear_attention' for layer 1");
  CHECK(model_error(R"("layer_types": ["full_attention"])") ==
        "c.json: layer_types: expected a list of 4, one for each layer, found a list of 1");
  CHECK(model_error(R"("attention_chunk_size": 64)").substr(0, 30) ==
        "c.json: attention_chunk_size: ");
}

TEST_CASE("configs of other caches, and without what is needed, are refused by field") {
  CHECK(error_of([] { read_kv_model("[]", "c.json", 1); }) ==
        "c.json: expected the object of a config.json, found a list of 0");
  CHECK(error_of([] { read_kv_model(R"({"n_layer": 3})", "c.json", 1); }) ==
        "c.json: num_hidden_layers: expected an integer from 1 to 4096, found no such field");
  CHECK(model_error(R"("index_topk": 2048)") ==
        "c.json: index_topk: expected a model that caches keys and values of all tokens in every "
        "layer, found sparse attention, whose indexer has a cache of its own");
  CHECK(model_error(R"("full_attention_interval": 4)") ==
        "c.json: full_attention_interval: expected full attention in every layer, found it in one "
        "of 4");
  CHECK(model_error(R"("num_kv_shared_layers": 0)") == "no error");
  CHECK(model_error(R"("num_key_value_heads": 3)") ==
        "c.json: num_key_value_heads: expected a divisor of num_attention_heads (8), found 3");
  CHECK(model_error(R"("multi_query": true)") ==
        "c.json: multi_query: expected num_key_value_heads, which says how many KV heads there "
        "are, found true without it");
  CHECK(model_error(R"("kv_lora_rank": 512)") ==
        "c.json: qk_rope_head_dim: expected an integer from 1 to 1048576, found no such field");
  CHECK(model_error(R"("qk_rope_head_dim": 64)") ==
        "c.json: kv_lora_rank: expected an integer next to qk_rope_head_dim, found no such field");
  CHECK(error_of([] {
          read_kv_model(R"({"num_hidden_layers": 5, "text_config": )" + config("") + "}", "c.json",
                        1);
        }) == "c.json: text_config: num_hidden_layers: expected the same as outside (5), found 4");
}

TEST_CASE("layers that stages do not divide need a rule") {
  auto counts = [](const std::string& rule) {
    KvParallel parallel;
    parallel.pp = 8;
    parallel.layers = rule;
    std::vector<std::int64_t> starts = stage_starts(parallel, 61, "--from"), out;
    for (std::size_t s = 1; s < starts.size(); ++s) out.push_back(starts[s] - starts[s - 1]);
    return out;
  };
  using Counts = std::vector<std::int64_t>;
  CHECK(counts("vllm") == Counts{7, 7, 8, 8, 8, 8, 8, 7});
  CHECK(counts("sglang") == Counts{7, 7, 7, 8, 8, 8, 8, 8});
  CHECK(counts("trtllm") == Counts{8, 8, 8, 8, 8, 7, 7, 7});
  CHECK(counts("1,2,3,4,5,6,7,33") == Counts{1, 2, 3, 4, 5, 6, 7, 33});
  CHECK(from_error("pp=3") ==
        "--from: pp: expected a divisor of the 4 layers, or layers=vllm, sglang, trtllm or the "
        "layers of each stage, found 3");
  CHECK(from_error("pp=3 layers=vllm") == "no error");
  CHECK(from_error("pp=5") ==
        "--from: pp: expected at most one stage for each of the 4 layers, found 5");
  CHECK(from_error("pp=2 layers=3,2") ==
        "--from: layers: expected 2 stages with 4 layers in total, found 2 with 5");
  CHECK(from_error("pp=2 layers=mlx") ==
        "--from: layers: expected layers=vllm, sglang, trtllm or the layers of each stage, found "
        "'mlx'");
}

TEST_CASE("ways to spread a cache that cannot be are refused") {
  CHECK(from_error("tp=3") ==
        "--from: tp: expected a divisor or a multiple of the 4 KV heads, found 3");
  CHECK(from_error("tp=8 dcp=4 interleave=1") ==
        "--from: dcp: expected a divisor of the 2 ranks of tp that have the same heads, found 4");
  CHECK(from_error("cp=2") ==
        "--from: interleave: expected how many tokens in turn a rank of cp or dcp gets (in vLLM 1 "
        "unless set), found none");
  CHECK(from_error("tp=2 interleave=1") ==
        "--from: interleave: expected it with cp or dcp, found it alone");
  CHECK(from_error("cp=2 interleave=3") ==
        "--from: interleave: expected a divisor of the 16 tokens of a block, found 3");
  CHECK(from_error("tp=2 tp=4") == "--from: expected each size once, found tp twice");
  CHECK(from_error("tp=2,pp=2") == "--from: expected a blank between sizes, found ',pp=2'");
  CHECK(from_error("ep=2") ==
        "--from: expected sizes such as 'tp=4 pp=2', of tp, pp, dp, cp, dcp, and "
        "interleave=TOKENS, layers=RULE, found 'ep=2'");
  CHECK(from_error("dp=1024 cp=1024 tp=4 interleave=1") ==
        "--from: expected at most 1048576 ranks, found more");
  CHECK(spec_error([](KvSpec& changed) { changed.to.ranks = "8-14"; }) ==
        "--to-ranks: expected 8 ranks, as --to has, found 7");
  CHECK(spec_error([](KvSpec& changed) { changed.from.dp_rank = 1; }) ==
        "--dp-rank: expected an integer from 0 to 0, found 1");
  CHECK(
      spec_error([](KvSpec& changed) { changed.config = config(""); }) ==
      "--dtype: expected the cache's dtype such as bf16, as c.json does not state it, found none");
}

TEST_CASE("forms and tables that cannot be are refused") {
  CHECK(form_error("blocks,tokens,dim") ==
        "--form: expected a dim heads, found 'blocks,tokens,dim'");
  CHECK(form_error("blocks,tokens,heads,dim,heads") ==
        "--form: expected each dim once, found heads twice");
  CHECK(form_error("nhd").substr(0, 23) == "--form: expected a form");
  CHECK(spec_error([](KvSpec& changed) {
          changed.config = config(R"("v_head_dim": 4, "dtype": "bf16")");
        }) ==
        "--form: expected arrays of their own for keys of 8 channels and values of 4 (no kv), "
        "found 'vllm'");
  CHECK(spec_error([](KvSpec& changed) {
          changed.config = config(R"("kv_lora_rank": 4, "qk_rope_head_dim": 2, "dtype": "bf16")");
          changed.to.form = "blocks,tokens,heads,dim";
        }) ==
        "--to-form: expected neither kv nor heads, as a latent cache has none, found "
        "'blocks,tokens,heads,dim'");
  CHECK(table_error("[0, 1, 2, 3, 4, 5, 6]") == "no error");
  CHECK(table_error("[0, 1, 2]") ==
        "t.json: blocks: expected 7, as many as the tokens need, found 3");
  CHECK(table_error("[0, 1, 2, 3, 4, 5, 0]") ==
        "t.json: blocks: expected each block once, found 0 twice");
  CHECK(table_error(R"({"blocks": [0, 1, 2, 3, 4, 5, 7], "pool": 7})") ==
        "t.json: blocks: expected integers from 0 to 6, found 7");
  CHECK(table_error(R"({"blocks": [], "size": 7})") ==
        "t.json: 'size': expected a field of a table of blocks, found an unknown one");
  CHECK(table_error("[0, 1, 2, 3, 4, 5, 9000000000000000000]").substr(0, 15) == "t.json: blocks:");
  CHECK(table_error(fmt::format("[0, 1, 2, 3, 4, 5, {}]", std::int64_t{1} << 39)) == "no error");
  // Blocks of a page of 40 layers, one part each: a line of a file cannot hold them.
  CHECK(spec_error([](KvSpec& changed) {
          changed.tokens = 1'000'000;
          changed.from.form = "trtllm";
        }) ==
        "--form: expected arrays of at most 262144 parts, one for each layer, keys or values, and "
        "run of blocks that are neighbours in memory, found 500000");
  CHECK(spec_error([](KvSpec& changed) {
          changed.tokens = std::int64_t{1} << 32;
          changed.from.block = 1;
        }) ==
        "--block: expected at most 4194304 blocks, or pieces of blocks that are dealt, of "
        "4294967296 tokens, found more");
}
