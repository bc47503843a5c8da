// SPDX-License-Identifier: BSD-3-Clause
// The report on a model's transfer: what moves by kind of tensor and by stage, and what ranks do
// besides; its text, JSON and page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/models/transfer.h"
#include "sim/report/run_report.h"

namespace reshard::sim {

// Tensors that are reported together.
struct TransferGroup {
  std::string name;      // "layers.*.mlp.up_proj.weight", or "layers 0-7" of a stage
  std::string from, to;  // of a stage: its ranks
  std::size_t tensors = 0;
  std::int64_t bytes = 0;  // each tensor once
  TensorUse use;
};

// What the fullest rank does in its own memory, apart from the wire, if nothing of it overlaps.
// Each byte is read and written once, at the rate of the GPU's memory.
struct LocalWork {
  std::int64_t rate_bytes_per_s = 0;
  std::int64_t pack_bytes = 0;     // sent
  std::int64_t convert_bytes = 0;  // of buffers with another dtype
  std::int64_t install_bytes = 0;  // received
  std::int64_t time_ps(std::int64_t bytes) const;
};

// The same transfer with something changed.
struct WhatIfRow {
  std::string name;  // "tp=16"
  std::string refused = {};
  std::string planner = {};
  std::int64_t time_ps = 0, bound_ps = 0, peak_bytes = 0, extra_bytes = 0;
};

struct TransferReport {
  TransferText text;
  RunReport run;
  std::vector<TransferGroup> kinds, stages;
  bool in_turn = false;                 // one of the source's stages after another
  std::int64_t relayed_bytes = 0;       // received by ranks that do not need them, for others
  std::optional<LocalWork> local = {};  // none if the topology's GPUs are not known
  std::vector<WhatIfRow> what_ifs = {};
};

// `run` is the study's report, with the facts of its job.
TransferReport report_of_transfer(TransferText text, RunReport run, Study& study);

// "pack 2 GiB in 1.3 ms, install 4 GiB in 2.6 ms: at most, ..".
std::string local_text(const LocalWork& local);
std::string transfer_table(const TransferReport& report, bool verbose, std::size_t width);
std::string transfer_json(const TransferReport& report);  // "reshard.model/1"
std::string transfer_page(const TransferReport& report, Study& study);

}  // namespace reshard::sim
