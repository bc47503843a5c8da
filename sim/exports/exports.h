// SPDX-License-Identifier: BSD-3-Clause
// Formats in which other programs take plans, one row each.
#pragma once

#include <span>
#include <string>

#include "core/plan/plan.h"
#include "core/stored/stored_requests.h"

namespace reshard::sim {

struct ExportInput {
  const Plan& plan;
  // The places of shards in buffers, if the plan's requests are made from layouts. Otherwise null,
  // and every rank has each tensor's shard as a row-major buffer of the tensor's name.
  const StoredRequests* stored = nullptr;
  std::string topology = {};  // as --topology takes it; empty: the default
};

struct Exported {
  std::string text;
  std::string hint = {};  // for people, next to it
};

struct ExportRow {
  const char* name;
  const char* what;
  // Throws InputError for a plan that the format cannot express.
  Exported (*write)(const ExportInput& input);
};
std::span<const ExportRow> exports();

// The lines of a file for reshard check before its copies, without layouts of the input.
std::string check_head(const Plan& plan);
// The name of a tensor in exports: its own, or "tensor 3".
std::string export_name(const Plan& plan, TensorId tensor);
// Throws InputError if two tensors have the same name.
void require_own_names(const Plan& plan);

// "0:4,2:8", as the lines of copies have boxes.
std::string slices_text(const Box& box);

// The writers.
Exported export_copies(const ExportInput& input);
Exported export_descriptors(const ExportInput& input);
Exported export_csv(const ExportInput& input);
Exported export_mooncake(const ExportInput& input);
Exported export_trace(const ExportInput& input);

}  // namespace reshard::sim
