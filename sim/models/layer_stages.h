// SPDX-License-Identifier: BSD-3-Clause
// Which layers of a model each pipeline stage has, by the rules of the frameworks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace reshard::sim {

// Layers that a stage runs without a break. With virtual stages (VPP), a stage has several such
// chunks.
struct StageChunk {
  std::vector<int> layers = {};  // ascending
  bool has_embedding = false, has_head = false;
  friend bool operator==(const StageChunk&, const StageChunk&) = default;
};
// The chunks of each stage.
using StageSplit = std::vector<std::vector<StageChunk>>;

// One chunk per stage with so many layers; the first stage has the embedding, the last has the
// head.
StageSplit split_of(const std::vector<int>& counts);

// The options of Megatron-Core (core/transformer/transformer_block.py, get_num_layers_to_build).
struct MegatronStages {
  int stages = 1, chunks = 1;
  int first = 0, last = 0;  // num_layers_in_first/last_pipeline_stage; 0: not set
  // account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split: whether each
  // counts as a layer.
  bool counts_embedding = false, counts_loss = false;
  std::string_view layout = {};  // pipeline_model_parallel_layout, such as "Et*3|(tt|)*28m|L"
};
// Throws InputError, naming the option, for numbers of layers that Megatron rejects.
StageSplit megatron_stages(const MegatronStages& options, int layers);

// The number of layers of each stage. If the stages do not divide the layers, vLLM gives one more
// layer each to the stages before the last one, from the back; SGLang to the last stages;
// TensorRT-LLM to the first. They throw InputError if a stage would have no layer.
std::vector<int> vllm_stages(int layers, int stages);
std::vector<int> sglang_stages(int layers, int stages);
std::vector<int> tensorrt_llm_stages(int layers, int stages);
// Reads a list as VLLM_PP_LAYER_PARTITION and similar options have it: "16,15,15".
std::vector<int> stages_in(std::string_view text, int layers, int stages);

}  // namespace reshard::sim
