// SPDX-License-Identifier: BSD-3-Clause
// A model's transfer between two frameworks, as layouts, described by a few words for each side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/models/weights/model.h"

namespace reshard::sim {

// A side with known lines, read from a file.
struct GivenSide {
  std::string lines, description;
  std::vector<std::string> notes = {};
  std::int64_t end_rank = 0;  // greater than every rank in the lines
};

struct SideSpec {
  std::string parallelism = {};         // "megatron tp=8 pp=2"
  std::optional<GivenSide> given = {};  // used in place of the words
  std::string ranks = {};               // "0-15", in the framework's order; empty: 0, 1, ...
  // Whether, if the framework needs another number of ranks, it gets that many from the first of
  // `ranks` on.
  bool ranks_may_change = false;
};

// The names of what was given, for messages and notes.
struct TransferFields {
  std::string_view from = "--from", to = "--to", ranks = "--ranks", to_ranks = "--to-ranks",
                   dtype = "--dtype";
};

struct ModelTransfer {
  SideSpec from, to;
  // "bf16", or "fp8" for the weights and scales of the quantised checkpoint. Empty: what both sides
  // support.
  std::string dtype = {};
  TransferFields fields = {};
};

struct TransferText {
  std::string model;               // "kimi_k2, 61 layers"
  std::string lines;               // lines of a file of layouts (docs/check.md)
  std::string from, to;            // "megatron tp=8 pp=2 on ranks 0-15"
  std::string dtype;               // of most weights
  std::vector<std::string> notes;  // what was assumed or left out, one sentence each
};

// Sets the dtype of all weights except the correction biases of routers.
void change_dtype(Model& model, DType dtype);

// Throws InputError, naming the side and the word, for what a framework does not support.
TransferText transfer_text(Model model, const ModelTransfer& transfer);

}  // namespace reshard::sim
