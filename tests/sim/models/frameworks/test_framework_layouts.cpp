// SPDX-License-Identifier: BSD-3-Clause
// What lies where under the frameworks, for what drawn models do not reach: buckets of optimizers
// by stage, and the buffers in which serving frameworks differ from their weights' names.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "core/base/errors.h"
#include "sim/check/check_file.h"
#include "sim/models/transfer.h"
#include "sim/models/weights/model_source.h"
#include "tests/sim/models/small_models.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

struct Laid {
  ModelLayouts layouts;
  std::vector<std::string> notes;

  const StoredBuffer* find(int rank, std::string_view name) const {
    auto found = layouts.source->find(Rank{rank}, name);
    return found ? &layouts.source->buffers()[*found] : nullptr;
  }
  // The tensors' elements on a rank, those of aliases too.
  std::int64_t elements(int rank) const {
    std::int64_t out = 0;
    for (const StoredBuffer& buffer : layouts.source->buffers())
      if (buffer.rank == Rank{rank})
        for (const StoredPart& part : buffer.parts) out += element_count(part.box.extents());
    return out;
  }
  std::set<std::string> names(int rank, std::string_view with) const {
    std::set<std::string> out;
    for (const StoredBuffer& buffer : layouts.source->buffers())
      if (buffer.rank == Rank{rank} && buffer.name.find(with) != std::string_view::npos)
        out.emplace(buffer.name);
    return out;
  }
  bool notes_say(std::string_view text) const {
    return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
      return note.find(text) != std::string::npos;
    });
  }
};

Laid laid(const std::string& model, const std::string& words) {
  TransferText text =
      transfer_text(read_model({"traces/models/" + model + ".json"}), {{words}, {"whole"}});
  std::istringstream in(text.lines);
  LineReader reader(in, "l");
  return {read_sides(reader, "l"), text.notes};
}

std::string refusal(const std::string& model, const std::string& words) {
  try {
    laid(model, words);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// The rows of a buffer's first part.
std::pair<std::int64_t, std::int64_t> rows(const StoredBuffer& buffer) {
  return {buffer.parts.front().box.lo[0], buffer.parts.front().box.hi[0]};
}

}  // namespace

TEST_CASE("A rank's optimizer buckets have what its stage has, and no more") {
  for (const char* words : {"megatron tp=8 pp=2 first=30", "megatron tp=4 pp=2 vpp=2",
                            "megatron tp=2 pp=4 dp=1", "megatron tp=8 pp=1"}) {
    INFO(words);
    Laid weights = laid("llama3-70b", words),
         buckets = laid("llama3-70b", std::string(words) + " optimizer bucket-size=500000000");
    for (int rank = 0; rank < 8; ++rank) CHECK(buckets.elements(rank) == weights.elements(rank));
  }
}

TEST_CASE("Only the first chunk of the first stage has several buckets") {
  Laid whole = laid("llama3-70b", "megatron tp=4 pp=2 vpp=2 optimizer");
  CHECK(whole.names(0, "model0.optimizer").size() > 1);
  CHECK(whole.names(0, "model1.optimizer") == std::set<std::string>{"model1.optimizer.bucket0"});
  CHECK(whole.names(4, "optimizer") ==
        std::set<std::string>{"model0.optimizer.bucket0", "model1.optimizer.bucket0"});
  CHECK(whole.notes_say("--overlap-grad-reduce is assumed"));
  Laid one = laid("llama3-70b", "megatron tp=4 pp=2 optimizer one-bucket");
  CHECK(one.names(0, "optimizer") == std::set<std::string>{"optimizer.bucket0"});
  CHECK_FALSE(one.notes_say("--overlap-grad-reduce"));
  CHECK(refusal("llama3-70b", "megatron tp=4 one-bucket") ==
        "--from: one-bucket: expected optimizer next to it, found no value");
}

TEST_CASE("Ranks share a bucket in ascending order, whichever of dp and cp is faster") {
  for (const char* order : {"tp-cp-ep-dp-pp", "tp-dp-cp-ep-pp"}) {
    Laid all =
        laid("llama3-70b", std::string("megatron dp=2 cp=2 optimizer one-bucket order=") + order);
    // The bucket begins with the head's 128,256 rows.
    std::vector<std::int64_t> first;
    for (int rank = 0; rank < 4; ++rank) {
      const StoredBuffer* bucket = all.find(rank, "optimizer.bucket0");
      REQUIRE(bucket != nullptr);
      const auto& part = bucket->parts.front();
      const std::string& name = (*all.layouts.tensors)[part.tensor].name;
      first.push_back(name == "lm_head.weight" ? -1 : std::stoi(name.substr(13)));
    }
    INFO(order);
    CHECK(first[0] == -1);
    CHECK(std::is_sorted(first.begin() + 1, first.end(), std::greater<>()));
    CHECK(first[3] < first[1]);
  }
}

TEST_CASE("The router's bias is no parameter: it stays next to the buckets") {
  Laid all = laid("deepseek-v3", "megatron tp=1 ep=8 dp=8 optimizer");
  CHECK(all.names(0, "router.expert_bias").size() == 58);
}

TEST_CASE("Experts of modules of their own are named so") {
  Laid all = laid("qwen3-235b", "megatron ep=8 dp=8 spec=local");
  CHECK(all.find(7, "decoder.layers.0.mlp.experts.local_experts.15.linear_fc1.weight") != nullptr);
  CHECK(all.find(7, "decoder.layers.0.mlp.experts.linear_fc1.weight15") == nullptr);
}

TEST_CASE("Megatron's orders of ranks") {
  CHECK(refusal("qwen3-235b", "megatron tp=2 dp=4 pp=2 ep=2 etp=2 order=tp-cp-pp-ep-dp")
            .starts_with("--from: order: expected pp last, as Megatron does unless"));
  CHECK(refusal("llama3-70b", "megatron tp=2 cp=2 pp=2 order=tp-pp-cp-ep-dp")
            .starts_with("--from: order: expected pp last"));
  CHECK(refusal("qwen3-235b", "megatron tp=2 dp=2 pp=2 ep=1 order=tp-cp-pp-ep-dp") == "");
  CHECK(refusal("llama3-70b", "megatron layout=Et*40|t*40L") ==
        "--from: layout: expected a single chunk where pp is 1, found 2");
}

TEST_CASE("SGLang's head is cut by all ranks of a stage unless told otherwise") {
  auto head = [](const std::string& words, int rank) {
    return rows(*laid("llama3-70b", words).find(rank, "lm_head.weight"));
  };
  CHECK(head("sglang tp=4 dp=2", 1) == std::pair<std::int64_t, std::int64_t>{32'064, 64'128});
  CHECK(head("sglang tp=4 dp=2 dp-lm-head", 1) ==
        std::pair<std::int64_t, std::int64_t>{64'128, 128'256});
  CHECK(rows(*laid("llama3-70b", "sglang tp=4 dp=2").find(1, "model.embed_tokens.weight")) ==
        std::pair<std::int64_t, std::int64_t>{64'128, 128'256});
  CHECK(refusal("llama3-70b", "sglang tp=4 dp-lm-head") ==
        "--from: dp-lm-head: expected dp above 1, found no value");
}

TEST_CASE("Shared experts of vLLM are whole where it splits tokens over tp") {
  const std::string gate = "model.layers.3.mlp.shared_experts.gate_up_proj.weight";
  Laid whole = laid("deepseek-v3", "vllm tp=2 dp=2 ep"), cut = laid("deepseek-v3", "vllm tp=4 ep");
  CHECK(whole.find(1, gate)->shape[0] == 4096);
  CHECK(whole.notes_say("use_sequence_parallel_moe"));
  CHECK(cut.find(1, gate)->shape[0] == 1024);
  CHECK(laid("deepseek-v3", "sglang tp=4").notes_say("--disable-shared-experts-fusion"));
}

TEST_CASE("A bias that ranks would add up is on the first of them") {
  for (const auto& [words, name] : std::map<std::string, std::string>{
           {"vllm tp=2", "model.layers.0.mlp.experts.w2_bias"},
           {"sglang tp=2", "model.layers.0.mlp.experts.w2_weight_bias"}}) {
    Laid all = laid("gpt-oss-120b", words);
    INFO(words);
    CHECK(all.find(0, name) != nullptr);
    CHECK(all.find(1, name) == nullptr);
    CHECK(all.notes_say("the others hold zeros"));
  }
  Laid by_expert = laid("gpt-oss-120b", "vllm tp=2 ep");
  CHECK(by_expert.find(1, "model.layers.0.mlp.experts.w2_bias") != nullptr);
}

TEST_CASE("Names of serving frameworks that are not the checkpoint's") {
  Laid oss = laid("gpt-oss-120b", "vllm tp=1");
  CHECK(oss.find(0, "model.layers.0.attn.qkv_proj.weight") != nullptr);
  CHECK(oss.find(0, "model.embedding.weight") != nullptr);
  CHECK(oss.names(0, "self_attn").empty());
  Laid mla = laid("deepseek-v3", "sglang tp=1");
  CHECK(mla.names(0, "fused_qkv_a_proj_with_mqa.weight").size() == 2 * 61);  // with scales
}

TEST_CASE("Redundant experts need expert parallelism") {
  CHECK(refusal("qwen3-235b", "vllm tp=2 redundant=2") ==
        "--from: redundant: expected ep next to it, found '2'");
}

TEST_CASE("Joined matrices have scales together, in whole blocks") {
  auto refused = [](const std::string& fields, const std::string& to,
                    const char* family = "llama") -> std::string {
    try {
      transfer_text(
          test::small_model(family,
                            R"(, "quantization_config": {"quant_method": "fp8", )" + fields + "}"),
          {{"whole"}, {to}});
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const std::string left_out = R"("weight_block_size": [1, 1],
                                  "ignored_layers": ["model.layers.0.self_attn.k_proj"])";
  CHECK(refused(left_out, "vllm") ==
        "--to: expected model.layers.0.self_attn.q_proj.weight and "
        "model.layers.0.self_attn.k_proj.weight both in FP8 or neither, as vllm joins them; found "
        "one of them");
  CHECK(refused(left_out, "hf tp=1").empty());
  CHECK(refused(R"("weight_block_size": [1, 1])", "vllm").empty());
  CHECK_THAT(refused(R"("weight_block_size": [1000, 1000])", "vllm"),
             Catch::Contains("in whole blocks of 1000, as it is joined with"));
  CHECK_THAT(refused(R"("weight_block_size": [1, 1], "ignored_layers": ["up_proj"])", "sglang",
                     "qwen3_moe"),
             Catch::Contains("experts.gate_proj.weight and model.layers") &&
                 Catch::Contains("both in FP8 or neither, as sglang joins them"));
  CHECK_THAT(refused(R"("weight_block_size": [3, 1])", "vllm", "mixtral"),
             Catch::Contains("in whole blocks of 3, as it is joined with"));
}

TEST_CASE("SGLang keeps the head of tied embeddings only where a stage has them") {
  const std::string tied = R"(, "tie_word_embeddings": true)";
  auto to = [&](const char* family, const char* side) {
    return transfer_text(test::small_model(family, tied), {{"whole"}, {side}});
  };
  CHECK_THROWS_WITH(to("llama", "sglang pp=2"),
                    "--to: pp: expected 1 for llama with tied embeddings, whose last stage would "
                    "have no head in SGLang, found '2'");
  CHECK_NOTHROW(to("llama", "sglang"));
  CHECK_NOTHROW(to("qwen3", "sglang pp=2"));
}
