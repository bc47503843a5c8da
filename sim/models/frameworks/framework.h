// SPDX-License-Identifier: BSD-3-Clause
// The frameworks that hold models, one row each: how they distribute a model over ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "sim/models/parallelism.h"
#include "sim/models/side_lines.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

// One side of a transfer: the model in a framework, on ranks.
struct Side {
  const Model& model;
  Parallelism& options;
  std::vector<Rank> ranks;
  SideLines& lines;
  std::vector<std::string>& notes;  // assumptions, one sentence each
};

struct FrameworkRow {
  std::string_view name;
  std::string_view words;  // that it accepts, for messages and help
  std::string_view what;   // a description for help
  bool holds_scales;       // FP8 weights with scales of blocks
  // The number of ranks that the words require. Throws InputError.
  std::int64_t (*ranks)(const Model& model, Parallelism& options);
  // Writes the lines of a side with that number of ranks. Throws InputError for what the framework
  // does not support.
  void (*write)(const Side& side);
};
std::span<const FrameworkRow> frameworks();
// Throws InputError if the framework is not known.
const FrameworkRow& framework_of(const Parallelism& options);

// ---- used by several frameworks -----------------------------------------------------------------

// Throws InputError "FIELD: KEY: expected a number that divides WHAT, found N".
void require_divides(const Side& side, std::string_view key, std::int64_t n, std::int64_t length,
                     std::string_view what);
// The part of a stacked expert's name before the projection: "model.layers.3.mlp.experts.".
std::string experts_prefix(const Weight& expert);

std::int64_t megatron_ranks(const Model& model, Parallelism& options);
void write_megatron(const Side& side);
std::int64_t fsdp2_ranks(const Model& model, Parallelism& options);
void write_fsdp2(const Side& side);
std::int64_t flat_ranks(const Model& model, Parallelism& options);
void write_fsdp1(const Side& side);
void write_zero3(const Side& side);
std::int64_t vllm_ranks(const Model& model, Parallelism& options);
void write_vllm(const Side& side);
std::int64_t sglang_ranks(const Model& model, Parallelism& options);
void write_sglang(const Side& side);
std::int64_t hugging_face_ranks(const Model& model, Parallelism& options);
void write_hugging_face(const Side& side);
std::int64_t whole_ranks(const Model& model, Parallelism& options);
void write_whole(const Side& side);

}  // namespace reshard::sim
