// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/frameworks/framework.h"

#include <array>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/models/frameworks/needed_parts.h"

namespace reshard::sim {
namespace {

template <void (*write)(const Side&), Fusion fusion>
void checked(const Side& side) {
  require_parts(side, fusion);
  write(side);
  require_all(side);
}

constexpr auto kFrameworks = std::to_array<FrameworkRow>({
    {"megatron",
     "tp=, pp=, vpp=, cp=, dp=, ep=, etp=, order=, first=, last=, embedding-in-split, "
     "loss-in-split, layout=, spec=te|local, experts=each|grouped, vocab-divisible=, optimizer, "
     "bucket-size=, one-bucket",
     "Megatron-Core's weights", false, megatron_ranks, checked<write_megatron, Fusion::Megatron>},
    {"fsdp2", "replicate=, dp=, tp=, experts=tp|ep|whole",
     "FSDP2, over tensor parallelism if tp is given", false, fsdp2_ranks,
     checked<write_fsdp2, Fusion::InMemory>},
    {"hsdp", "replicate=, dp=, tp=, experts=tp|ep|whole", "FSDP2 on each of several groups", false,
     fsdp2_ranks, checked<write_fsdp2, Fusion::InMemory>},
    {"fsdp1", "dp=, orig-params", "FSDP1: a flat parameter for each layer", false, flat_ranks,
     checked<write_fsdp1, Fusion::InMemory>},
    {"zero3", "dp=", "DeepSpeed's ZeRO-3: each parameter flat", false, flat_ranks,
     checked<write_zero3, Fusion::InMemory>},
    {"vllm", "tp=, pp=, dp=, ep, replicas=, layers=, experts=linear|round-robin, redundant=",
     "vLLM", true, vllm_ranks, checked<write_vllm, Fusion::Serving>},
    {"sglang", "tp=, pp=, dp=, ep=, moe-dp=, replicas=, layers=, redundant=, dp-lm-head", "SGLang",
     true, sglang_ranks, checked<write_sglang, Fusion::Serving>},
    {"hf", "tp=, ep=, replicas=", "Hugging Face's tp_plan, or ep_plan", true, hugging_face_ranks,
     checked<write_hugging_face, Fusion::InMemory>},
    {"whole", "ranks=", "all of the model on every rank, as its checkpoint", true, whole_ranks,
     checked<write_whole, Fusion::Files>},
});

}  // namespace

std::span<const FrameworkRow> frameworks() { return kFrameworks; }

const FrameworkRow& framework_of(const Parallelism& options) {
  std::string names;
  for (const FrameworkRow& row : kFrameworks) {
    if (row.name == options.framework()) return row;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  throw InputError(fmt::format("{}: expected a framework ({}), found {}", options.field(), names,
                               quoted(options.framework())));
}

void require_divides(const Side& side, std::string_view key, std::int64_t n, std::int64_t length,
                     std::string_view what) {
  if (length % n != 0)
    throw InputError(fmt::format("{}: {}: expected a number that divides {} {} of {}, found {}",
                                 side.options.field(), key, length, what, side.model.family, n));
}

std::string experts_prefix(const Weight& expert) {
  std::size_t at = expert.name.find("experts.");
  return expert.name.substr(0, at) + "experts.";
}

}  // namespace reshard::sim
