// SPDX-License-Identifier: BSD-3-Clause
// A model's transfer between two frameworks, as layouts: what a user says in three words each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/models/weights/model.h"

namespace reshard::sim {

// A side whose lines are known from a file.
struct GivenSide {
  std::string lines, description;
  std::vector<std::string> notes = {};
  std::int64_t end_rank = 0;  // greater than every rank in the lines
};

struct SideSpec {
  std::string parallelism = {};         // "megatron tp=8 pp=2"
  std::optional<GivenSide> given = {};  // in place of it
  std::string ranks = {};               // "0-15", in the order of the framework; empty: 0, 1, ..
  // If the framework needs another number of ranks: as many from the first of `ranks` on.
  bool ranks_may_change = false;
};

// How messages and notes name what was given.
struct TransferFields {
  std::string_view from = "--from", to = "--to", ranks = "--ranks", to_ranks = "--to-ranks",
                   dtype = "--dtype";
};

struct ModelTransfer {
  SideSpec from, to;
  // "bf16", or "fp8" for the quantised checkpoint's weights and scales; empty: what both sides can
  // hold.
  std::string dtype = {};
  TransferFields fields = {};
};

struct TransferText {
  std::string model;               // "kimi_k2, 61 layers"
  std::string lines;               // of a file of layouts (docs/check.md)
  std::string from, to;            // "megatron tp=8 pp=2 on ranks 0-15"
  std::string dtype;               // of most weights
  std::vector<std::string> notes;  // what is assumed or left out, a sentence each
};

// Gives all weights a dtype, but for corrections of routers.
void change_dtype(Model& model, DType dtype);

// Throws InputError, naming the side and the word, for what a framework refuses.
TransferText transfer_text(Model model, const ModelTransfer& transfer);

}  // namespace reshard::sim
