// SPDX-License-Identifier: BSD-3-Clause
// The report on a model's transfer: what moves, by kind of tensor and by stage, and the work of
// ranks in their own memory; as text, JSON and a page.
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
  std::string name;      // "layers.*.mlp.up_proj.weight", or "layers 0-7" for a stage
  std::string from, to;  // the ranks of a stage
  std::size_t tensors = 0;
  std::int64_t bytes = 0;  // counting each tensor once
  TensorUse use;
};

// The work of the busiest rank in its own memory, in addition to what links carry, if no part of it
// overlaps. Each byte is read and written once, at the rate of the GPU's memory.
struct LocalWork {
  std::int64_t rate_bytes_per_s = 0;
  std::int64_t pack_bytes = 0;     // sent
  std::int64_t convert_bytes = 0;  // in buffers with another dtype
  std::int64_t install_bytes = 0;  // received
  std::int64_t time_ps(std::int64_t bytes) const;
};

// A variant of the transfer that differs in one thing.
struct WhatIfRow {
  std::string name;  // "tp=16"
  std::string refused = {};
  std::vector<std::string> notes = {};  // what is assumed for it alone
  std::string planner = {};
  std::int64_t time_ps = 0, bound_ps = 0, peak_bytes = 0, extra_bytes = 0;
};

struct TransferReport {
  TransferText text;
  RunReport run;
  std::vector<TransferGroup> kinds, stages;
  bool in_turn = false;                 // the stages of the source one after another
  std::int64_t relayed_bytes = 0;       // received by ranks that only pass them on
  std::optional<LocalWork> local = {};  // nothing if the topology's GPUs are unknown
  std::vector<WhatIfRow> what_ifs = {};
};

// `run` is the study's report, including the facts of its job.
TransferReport report_of_transfer(TransferText text, RunReport run, Study& study);

// "pack 2 GiB in 1.3 ms, install 4 GiB in 2.6 ms: at most, ..".
std::string local_text(const LocalWork& local);
std::string transfer_table(const TransferReport& report, bool verbose, std::size_t width);
std::string transfer_json(const TransferReport& report);  // "reshard.model/1"
std::string transfer_page(const TransferReport& report, Study& study);

}  // namespace reshard::sim
