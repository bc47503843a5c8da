// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "sim/models/layer_stages.h"

namespace reshard::sim {
namespace {

using Counts = std::vector<int>;

// Layers of each stage; the chunks of one are joined by '+'.
std::string text(const StageSplit& split) {
  std::string out;
  for (const std::vector<StageChunk>& stage : split) {
    out += out.empty() ? "" : " ";
    for (std::size_t c = 0; c < stage.size(); ++c) {
      out += c == 0 ? "" : "+";
      if (stage[c].has_embedding) out += "E";
      const std::vector<int>& layers = stage[c].layers;
      if (!layers.empty())
        out += std::to_string(layers.front()) + "-" + std::to_string(layers.back());
      if (stage[c].has_head) out += "L";
    }
  }
  return out;
}

TEST_CASE("stages: the remainder of each serving framework") {
  CHECK(vllm_stages(61, 8) == Counts{7, 7, 8, 8, 8, 8, 8, 7});
  CHECK(sglang_stages(61, 8) == Counts{7, 7, 7, 8, 8, 8, 8, 8});
  CHECK(tensorrt_llm_stages(61, 8) == Counts{8, 8, 8, 8, 8, 7, 7, 7});
  CHECK(vllm_stages(7, 4) == Counts{2, 2, 2, 1});
  CHECK(vllm_stages(5, 1) == Counts{5});
  CHECK_THROWS_WITH(vllm_stages(3, 4),
                    "pp: expected at most as many stages as layers, found 4 for 3");
}

TEST_CASE("stages: own numbers") {
  CHECK(stages_in("16,15,15,15", 61, 4) == Counts{16, 15, 15, 15});
  CHECK_THROWS_WITH(stages_in("16,15", 61, 2),
                    "layers: expected 2 numbers that add up to 61, found '16,15'");
  CHECK_THROWS_WITH(stages_in("16,x", 61, 2),
                    "layers: expected a number of layers (an integer), found 'x'");
}

TEST_CASE("stages: Megatron's") {
  CHECK(text(megatron_stages({.stages = 4}, 8)) == "E0-1 2-3 4-5 6-7L");
  CHECK(text(megatron_stages({.stages = 2, .chunks = 2}, 8)) == "E0-1+4-5 2-3+6-7L");
  CHECK(text(megatron_stages({.stages = 4, .first = 1, .last = 3}, 10)) == "E0-0 1-3 4-6 7-9L");
  CHECK(text(megatron_stages({.stages = 2, .last = 3}, 10)) == "E0-6 7-9L");
  CHECK(text(megatron_stages({.stages = 2, .counts_embedding = true, .counts_loss = true}, 8)) ==
        "E0-3 4-7L");
  CHECK(text(megatron_stages({.stages = 3, .counts_embedding = true}, 8)) == "E0-1 2-4 5-7L");
  CHECK_THROWS_WITH(
      megatron_stages({.stages = 3}, 8),
      "pp: expected stages that share 8 layers evenly, found 3; Megatron takes first=N, "
      "last=N, embedding-in-split, loss-in-split or layout=...");
  CHECK_THROWS_WITH(megatron_stages({.stages = 2, .chunks = 3}, 8),
                    "vpp: expected a number that divides the 4 layers of a stage, found 3");
}

TEST_CASE("stages: Megatron's layout strings") {
  CHECK(text(megatron_stages({.stages = 2, .layout = "Ettt|t(tt)*2L"}, 8)) == "E0-2 3-7L");
  CHECK(text(megatron_stages({.stages = 2, .layout = "Et*3|(tt|)*2,mL"}, 7)) == "E0-2+5-6 3-4+L");
  CHECK_THROWS_WITH(megatron_stages({.stages = 2, .layout = "Et|t|L"}, 2),
                    "layout: expected a multiple of 2 chunks (pp), found 3");
  CHECK_THROWS_WITH(megatron_stages({.stages = 2, .layout = "Et|tL"}, 3),
                    "layout: expected E first, 3 t and L last, found 1 E, 2 t and 1 L in 'Et|tL'");
  CHECK_THROWS_WITH(megatron_stages({.stages = 2, .layout = "tE|tL"}, 2),
                    "layout: expected E first, 2 t and L last, found 1 E, 2 t and 1 L in 'tE|tL'");
  CHECK_THROWS_WITH(megatron_stages({.stages = 2, .layout = "Ex|L"}, 1),
                    "layout: expected E, t, m, L, '|' or '(', found 'x|L'");
}

}  // namespace
}  // namespace reshard::sim
