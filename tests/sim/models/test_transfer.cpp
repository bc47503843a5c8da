// SPDX-License-Identifier: BSD-3-Clause
// Words of frameworks: what they refuse, and what they assume.
#include <catch2/catch.hpp>

#include <sstream>
#include <string>

#include "core/base/errors.h"
#include "sim/check/check_file.h"
#include "sim/job/job_file.h"
#include "sim/models/transfer.h"
#include "sim/models/weights/model_source.h"
#include "sim/models/what_if.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

TransferText text_of(const std::string& model, const std::string& from, const std::string& to,
                     const std::string& dtype = "") {
  ModelTransfer transfer{{from}, {to}};
  transfer.dtype = dtype;
  return transfer_text(read_model({"traces/models/" + model + ".json"}), transfer);
}

std::string transfer_refusal(const std::string& model, const std::string& from,
                             const std::string& to = "whole", const std::string& dtype = "") {
  try {
    text_of(model, from, to, dtype);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string refused_layout(const TransferText& text) {
  std::istringstream in(text.lines);
  try {
    parse_job(in, "layout");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("What a framework does not do is refused by the word") {
  CHECK(transfer_refusal("llama3-70b", "megatron tp=3") ==
        "--from: tp: expected a number that divides 64 attention heads of llama, found 3");
  CHECK(transfer_refusal("llama3-70b", "megatron tp=2 zp=3")
            .starts_with("--from: expected megatron with "));
  CHECK(transfer_refusal("llama3-70b", "megatron tp=2 tp=3") ==
        "--from: expected 'tp' once, found it twice");
  CHECK(transfer_refusal("llama3-70b", "nemo tp=2")
            .starts_with("--from: expected a framework (megatron, "));
  CHECK(transfer_refusal("llama3-70b", "megatron tp=2 ep=2") ==
        "--from: ep: expected a model with experts, found '2'");
  CHECK(transfer_refusal("llama3-70b", "whole", "vllm ep") ==
        "--to: ep: expected a model with experts, found no value");
  CHECK(transfer_refusal("llama3-70b", "whole", "sglang tp=8 dp=3") ==
        "--to: dp: expected a number that divides tp 8, found '3'");
  CHECK(transfer_refusal("qwen3-235b", "megatron tp=4 ep=3 dp=3 etp=1") ==
        "--from: ep: expected a number that divides 128 experts of qwen3_moe, found 3");
  CHECK(transfer_refusal("qwen3-235b", "megatron tp=4 ep=8 etp=1") ==
        "--from: expected etp x ep to divide the 4 ranks of a stage (tp x cp x dp), found 8");
  CHECK(transfer_refusal("qwen3-235b", "whole", "vllm tp=8 ep redundant=3") ==
        "--to: redundant: expected a number of slots that 8 ranks share evenly with 128 experts, "
        "found '3'");
  CHECK(transfer_refusal("kimi-k2", "whole", "vllm tp=8 ep experts=round-robin") ==
        "--to: experts: expected linear for a model whose n_group is not above 1, as vLLM has it "
        "then, found 'round-robin'");
  CHECK(transfer_refusal("qwen3-235b", "whole", "sglang tp=12 ep=12").find("divides the experts") !=
        std::string::npos);
  CHECK(transfer_refusal("llama3-70b", "whole", "vllm pp=81") ==
        "--to: pp: expected at most as many stages as layers, found 81 for 80");
  CHECK(transfer_refusal("llama3-70b", "whole ranks=2000000")
            .starts_with("--from: ranks: expected a number from 1 to "));
}

TEST_CASE("Scales travel where both sides hold them, and blocks are not cut") {
  CHECK(text_of("deepseek-v3", "megatron", "vllm tp=8").dtype == "bf16");
  CHECK(text_of("deepseek-v3", "whole", "vllm tp=8 ep").dtype == "f8e4m3 with scales");
  CHECK(text_of("deepseek-v3", "whole", "vllm tp=8 ep", "bf16").dtype == "bf16");
  CHECK(transfer_refusal("deepseek-v3", "megatron", "vllm tp=8", "fp8")
            .starts_with("--dtype: expected fp8"));
  CHECK(
      transfer_refusal("llama3-70b", "whole", "whole", "fp8").starts_with("--dtype: expected fp8"));
  // 2048 rows of an expert on 32 ranks are half a block each.
  CHECK(refused_layout(text_of("deepseek-v3", "whole", "vllm tp=32")).find("block") !=
        std::string::npos);
}

TEST_CASE("Layers that stages do not share evenly have a note") {
  TransferText text = text_of("kimi-k2", "megatron pp=8", "whole");
  REQUIRE(text.notes.size() == 2);
  CHECK(text.notes[1].starts_with("--from: last=5 is assumed, as 8 stages do not share 61 layers"));
  CHECK(text.from == "megatron pp=8 on ranks 0-7");
  CHECK(text.to == "whole on rank 8");
}

TEST_CASE("Buckets of the distributed optimizer have parameters in reverse, shared evenly") {
  TransferText text =
      text_of("llama3-70b", "megatron tp=2 dp=2 optimizer bucket-size=1100000000", "whole");
  std::istringstream in(text.lines);
  LineReader reader(in, "l");
  ModelLayouts layouts = read_sides(reader, "l");
  // The head, padded to a multiple of 128 x 2 rows and cut by tp, then the final norm, and layer 79
  // from its last parameter on; each of the two ranks has half.
  const StoredBuffer& first =
      layouts.source->buffers()[*layouts.source->find(Rank{1}, "optimizer.bucket0")];
  CHECK(first.dtype == DType::F32);
  CHECK(first.converts);
  CHECK((*layouts.tensors)[first.parts[0].tensor].name == "lm_head.weight");
  CHECK(first.parts[0].box.lo[0] == 64'128);
  CHECK(first.parts[0].offset == 0);
  const std::int64_t head = 64'128 * 8192, down = 8192 * 14'336, up = 28'672 * 8192;
  const std::int64_t qkv = 10'240 / 2 * 8192, out = 8192 * 4096;
  // Parameters are added until there are 1.1 x 10^9 elements.
  std::int64_t elements = head + 8192;
  for (int layer = 0; elements < 1'100'000'000; ++layer)
    for (std::int64_t more : {down, up, std::int64_t{8192}, qkv, std::int64_t{8192}, out})
      if (elements < 1'100'000'000) elements += more;
  CHECK(element_count(first.shape) == (elements + 255) / 256 * 256 / 2);
  // All of a tp rank's share is once on the two ranks.
  std::int64_t all = 0;
  for (const StoredBuffer& buffer : layouts.source->buffers())
    if (to_int(buffer.rank) % 2 == 0)
      for (const StoredPart& part : buffer.parts) all += element_count(part.box.extents());
  const std::int64_t norms = 161 * 8192;
  CHECK(all == 2 * head + 80 * (down + up + qkv + out) + norms);
}

TEST_CASE("What-ifs change one word each") {
  WhatIf base{"", {{"megatron tp=2 pp=2"}, {"vllm tp=4"}}};
  std::vector<WhatIf> found = parse_what_ifs(
      "stages=in-turn buckets=1GiB memory=2GiB tp=8,16 from.pp=4", base, "--what-if");
  REQUIRE(found.size() == 6);
  CHECK(found[0].is_in_turn);
  CHECK(found[1].bucket_bytes == std::int64_t{1} << 30);
  CHECK(found[2].extra_bytes == std::int64_t{1} << 31);
  CHECK(found[4].transfer.to.parallelism == "vllm tp=16");
  CHECK(found[5].transfer.from.parallelism == "megatron tp=2 pp=4");
  CHECK(found[5].name == "from.pp=4");
  base.is_in_turn = true;
  found = parse_what_ifs("stages=at-once buckets=1GiB tp=8", base, "--what-if");
  CHECK_FALSE(found[0].is_in_turn);
  CHECK_FALSE(found[1].is_in_turn);
  CHECK(found[2].is_in_turn);
  CHECK_THROWS_WITH(parse_what_ifs("stages=soon", base, "--what-if"),
                    "--what-if: stages: expected in-turn or at-once, found 'soon'");
  CHECK_THROWS_WITH(parse_what_ifs("tp", base, "--what-if"),
                    "--what-if: expected words such as tp=8,16, found 'tp'");
}
