// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/commands/printed_layouts.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/check/unstacked.h"
#include "sim/digest/digest_file.h"
#include "sim/models/weights/file_names.h"
#include "tools/cli/failure.h"
#include "tools/cli/output/output.h"

namespace reshard::tools {
namespace {

std::size_t shown(const OutputOptions& output, std::size_t rows) {
  return output.verbose ? std::numeric_limits<std::size_t>::max() : rows;
}

// Tensors of the checkpoint that are several weights whole.
sim::JoinedTensors joined_in(const sim::Weights& weights, const sim::Model& model) {
  const sim::FileNames names(model);
  sim::JoinedTensors out;
  for (const std::string& name : weights.names()) {
    std::optional<sim::FileNames::Known> known = names.find(name);
    if (!known || known->expert >= 0 || weights.find(known->parameter->weight->name) != nullptr)
      continue;
    const sim::SafetensorsEntry& entry = weights.find(name)->entry;
    const Shape shape = names.shape_of(*known);
    if (entry.shape != std::vector<std::int64_t>(shape.begin(), shape.end()))
      throw InputError(fmt::format("{}: tensor {}: expected [{}], as {} says, found [{}]",
                                   weights.find(name)->place, name, text(shape), model.file,
                                   fmt::join(entry.shape, ",")));
    for (const sim::WeightPart& part : names.parts_of(*known, box_of(shape)))
      out[part.weight->name] = {name, {part.offset, part.weight->shape, part.strides}};
  }
  return out;
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
                   std::span<const sim::DigestSide> sides, std::int64_t rows,
                   const sim::Model* model) {
  const sim::ModelLayouts own = sim::unstacked(
      std::move(layouts), [&](std::string_view name) { return weights.find(name) != nullptr; });
  sim::JoinedTensors joined;
  if (model != nullptr) joined = joined_in(weights, *model);
  sim::Digests digests = sim::digests_of_weights(own, weights, sides, rows, joined);
  print(sim::write_digest_file(sim::file_of(digests, own)));
}

}  // namespace reshard::tools
