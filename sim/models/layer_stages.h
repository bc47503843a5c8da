// SPDX-License-Identifier: BSD-3-Clause
// Which layers of a model each pipeline stage has, by the rules of the frameworks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace reshard::sim {

// What a stage runs without a pause in between: with virtual stages (VPP), one of several.
struct StageChunk {
  std::vector<int> layers = {};  // ascending
  bool has_embedding = false, has_head = false;
  friend bool operator==(const StageChunk&, const StageChunk&) = default;
};
// By stage, its chunks.
using StageSplit = std::vector<std::vector<StageChunk>>;

// One chunk a stage of so many layers each, with the embedding on the first stage and the head on
// the last.
StageSplit split_of(const std::vector<int>& counts);

// Megatron-Core (core/transformer/transformer_block.py, get_num_layers_to_build).
struct MegatronStages {
  int stages = 1, chunks = 1;
  int first = 0, last = 0;  // num_layers_in_first/last_pipeline_stage; 0: not set
  // account_for_embedding/loss_in_pipeline_split: each counts as a layer.
  bool counts_embedding = false, counts_loss = false;
  std::string_view layout = {};  // pipeline_model_parallel_layout, such as "Et*3|(tt|)*28m|L"
};
// Throws InputError, naming the option, for numbers of layers that Megatron refuses.
StageSplit megatron_stages(const MegatronStages& options, int layers);

// Layers of each stage. vLLM gives the remainder to the stages before the last (one each, from the
// back), SGLang to the last stages, TensorRT-LLM to the first. Throw InputError for a stage without
// layers.
std::vector<int> vllm_stages(int layers, int stages);
std::vector<int> sglang_stages(int layers, int stages);
std::vector<int> tensorrt_llm_stages(int layers, int stages);
// "16,15,15": what VLLM_PP_LAYER_PARTITION and its like say.
std::vector<int> stages_in(std::string_view text, int layers, int stages);

}  // namespace reshard::sim
