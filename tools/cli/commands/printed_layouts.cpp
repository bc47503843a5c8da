// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/commands/printed_layouts.h"

#include <limits>

#include <fmt/core.h>

#include "sim/check/unstacked.h"
#include "sim/digest/digest_file.h"
#include "tools/cli/failure.h"
#include "tools/cli/output/output.h"

namespace reshard::tools {
namespace {

std::size_t shown(const OutputOptions& output, std::size_t rows) {
  return output.verbose ? std::numeric_limits<std::size_t>::max() : rows;
}

}  // namespace

void print_rows(const sim::ModelLayouts& model, const std::vector<sim::WhereQuery>& queries,
                const OutputOptions& output, std::string_view source) {
  constexpr std::size_t kRowsShown = 64;
  std::vector<sim::LayoutRow> rows;
  for (const sim::WhereQuery& query : queries) sim::add_rows(*model.source, source, query, rows);
  for (const sim::WhereQuery& query : queries) sim::add_rows(*model.destination, "to", query, rows);
  if (rows.empty() && !output.json)
    return print(sim::nowhere_text(*model.source, *model.destination, queries));
  print(output.json
            ? sim::layout_json(rows, *model.tensors)
            : sim::layout_text(rows, *model.tensors, shown(output, kRowsShown), screen_width()));
}

void print_check(const sim::CheckReport& report, const OutputOptions& output) {
  constexpr std::size_t kRowsShown = 20;
  print(output.json ? sim::check_json(report)
                    : sim::check_text(report, shown(output, kRowsShown), screen_width()));
}

void fail_on_findings(const sim::CheckReport& report) {
  if (!report.findings.empty())
    throw CheckNotHeld{{fmt::format("{}: {}", report.copies.file, sim::verdict(report))}};
}

void print_digests(sim::ModelLayouts layouts, const sim::Weights& weights,
                   std::span<const sim::DigestSide> sides, std::int64_t rows) {
  const sim::ModelLayouts own = sim::unstacked(
      std::move(layouts), [&](std::string_view name) { return weights.find(name) != nullptr; });
  sim::Digests digests = sim::digests_of_weights(own, weights, sides, rows);
  print(sim::write_digest_file(sim::file_of(digests, own)));
}

}  // namespace reshard::tools
