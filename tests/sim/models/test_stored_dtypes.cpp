// SPDX-License-Identifier: BSD-3-Clause
// Checkpoints whose tensors are stored otherwise than their config says.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "core/base/errors.h"
#include "sim/models/side_lines.h"
#include "sim/models/weights/config.h"
#include "sim/models/weights/stored_dtypes.h"
#include "tests/sim/models/small_models.h"

using namespace reshard;
using namespace reshard::sim;
using namespace reshard::test;

namespace {

constexpr const char* kFp8 =
    R"(, "quantization_config": {"quant_method": "fp8", "weight_block_size": [4, 4]})";
const std::string kQuery = "model.layers.0.self_attn.q_proj.weight";

std::vector<FileTensor> tensors_of(const Model& model, const std::string& name, DType dtype) {
  std::vector<FileTensor> out;
  model.for_each([&](const Weight& weight) {
    out.push_back({weight.name, weight.shape, name, dtype});
  });
  return out;
}

// A quantised checkpoint, with its scales.
std::vector<FileTensor> quantised(const Model& model) {
  std::vector<FileTensor> out;
  model.for_each([&](const Weight& weight) {
    const bool is_scaled = has_scales(weight);
    out.push_back({weight.name, weight.shape, is_scaled ? "F8_E4M3" : "BF16",
                   is_scaled ? DType::F8E4M3 : DType::BF16});
    if (!is_scaled) return;
    Shape blocks;
    for (std::int64_t extent : weight.shape) blocks.push_back((extent + 3) / 4);
    out.push_back({scale_name(weight.name), blocks, "F32", DType::F32});
  });
  return out;
}

FileTensor& named(std::vector<FileTensor>& tensors, const std::string& name) {
  for (FileTensor& tensor : tensors)
    if (tensor.name == name) return tensor;
  throw InputError("no " + name);
}

std::string refusal(Model model, const std::vector<FileTensor>& tensors) {
  try {
    check_file(model, tensors, "f");
    take_stored_dtypes(tensors, model, "f");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("The dtype in which a checkpoint has a weight is the weight's, with a note") {
  Model model = small_model("llama");
  std::vector<FileTensor> tensors = tensors_of(model, "BF16", DType::BF16);
  take_stored_dtypes(tensors, model, "f");
  CHECK(model.notes.empty());
  named(tensors, kQuery).dtype = DType::F32;
  named(tensors, kQuery).dtype_name = "F32";
  take_stored_dtypes(tensors, model, "f");
  CHECK(model.layers[0].find(Role::Query)->dtype == DType::F32);
  CHECK(model.layers[1].find(Role::Query)->dtype == DType::BF16);
  CHECK(model.notes ==
        std::vector<std::string>{"1 tensor in f32, as the checkpoint has it, such as " + kQuery +
                                 ", not in bf16, as c says; --dtype bf16 moves all so"});
}

TEST_CASE("Integers, FP8 without scales and two dtypes of one weight are refused") {
  const Model model = small_model("llama");
  CHECK(refusal(model, tensors_of(model, "I8", DType::I8)) ==
        "f: model.embed_tokens.weight: expected bf16, as c says, or another floating-point dtype "
        "of 16 bits or more, found i8");
  CHECK(refusal(model, tensors_of(model, "F8_E4M3", DType::F8E4M3)).ends_with("found f8e4m3"));
  std::vector<FileTensor> other = tensors_of(model, "BF16", DType::BF16);
  named(other, kQuery).dtype.reset();
  named(other, kQuery).dtype_name = "U32";
  CHECK(refusal(model, other).ends_with("found U32"));
  Model experts = small_model("qwen3_moe");
  const std::string gate = "model.layers.0.mlp.experts.";
  std::vector<FileTensor> two{{gate + "0.gate_proj.weight", Shape{4, 8}, "BF16", DType::BF16},
                              {gate + "1.gate_proj.weight", Shape{4, 8}, "F32", DType::F32}};
  CHECK_THROWS_WITH(take_stored_dtypes(two, experts, "f"),
                    "f: " + gate + "1.gate_proj.weight: expected bf16, as other tensors of " +
                        gate + "gate_proj.weight have it, found f32");
}

TEST_CASE("Scales are those of a quantised weight, in f32 and of its blocks") {
  Model model = small_model("llama", kFp8);
  const std::vector<FileTensor> all = quantised(model);
  CHECK(refusal(model, all).empty());
  std::vector<FileTensor> other = all;
  named(other, scale_name(kQuery)).shape = Shape{2, 1};
  CHECK(refusal(model, other) ==
        "f: " + scale_name(kQuery) + ": expected [2,2], as c says, found [2,1]");
  other = all;
  named(other, scale_name(kQuery)).dtype = DType::BF16;
  CHECK(refusal(model, other) ==
        "f: " + scale_name(kQuery) + ": expected f32 for scales, found bf16");
  other = all;
  named(other, scale_name(kQuery)).name = "model.norm.weight_scale_inv";
  CHECK(refusal(model, other).find("found 'model.norm.weight_scale_inv'") != std::string::npos);
  other = all;
  std::erase_if(other, [](const FileTensor& of) { return of.name == scale_name(kQuery); });
  CHECK(refusal(model, other) ==
        "f: " + kQuery + ": expected its scales " + scale_name(kQuery) + " next to it, found none");
  // No scales where nothing is quantised.
  const Model plain = small_model("llama");
  other = tensors_of(plain, "BF16", DType::BF16);
  other.push_back({scale_name(kQuery), Shape{2, 2}, "F32", DType::F32});
  CHECK(refusal(plain, other).find("found '" + scale_name(kQuery) + "'") != std::string::npos);
}

TEST_CASE("A weight that a quantised checkpoint has as it was keeps its dtype and has no scales") {
  Model model = small_model("llama", kFp8);
  std::vector<FileTensor> tensors = quantised(model);
  std::erase_if(tensors, [](const FileTensor& of) { return of.name == scale_name(kQuery); });
  named(tensors, kQuery).dtype = DType::BF16;
  named(tensors, kQuery).dtype_name = "BF16";
  take_stored_dtypes(tensors, model, "f");
  quantise(model);
  CHECK(model.layers[0].find(Role::Query)->dtype == DType::BF16);
  CHECK_FALSE(has_scales(*model.layers[0].find(Role::Query)));
  CHECK(model.layers[0].find(Role::Key)->dtype == DType::F8E4M3);
  CHECK(model.notes ==
        std::vector<std::string>{"1 tensor not quantised in the checkpoint, such as " + kQuery});
}
