// SPDX-License-Identifier: BSD-3-Clause
// What several commands print about a model's layouts and about copies between them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/check/check_report.h"
#include "sim/check/layout_report.h"
#include "sim/digest/digests.h"
#include "sim/models/weights/model.h"
#include "tools/cli/options.h"

namespace reshard::tools {

// The rows of both sides that any of the queries asks for; `source` is the name of that side.
void print_rows(const sim::ModelLayouts& model, const std::vector<sim::WhereQuery>& queries,
                const OutputOptions& output, std::string_view source = "from");

void print_check(const sim::CheckReport& report, const OutputOptions& output);
// Throws CheckNotHeld if there is a finding.
void fail_on_findings(const sim::CheckReport& report);

// The digests of what the ranks of the sides should hold, of so many rows each (0: those of a MiB).
// The checkpoint of a model can join its tensors, as files of its family do.
void print_digests(sim::ModelLayouts layouts, const sim::Weights& weights,
                   std::span<const sim::DigestSide> sides, std::int64_t rows,
                   const sim::Model* model = nullptr);

}  // namespace reshard::tools
