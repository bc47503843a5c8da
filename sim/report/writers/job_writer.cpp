// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/writers/job_writer.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/integers.h"
#include "core/base/units.h"
#include "core/layout/mesh.h"
#include "sim/report/facts.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kGroupsShown = 8;
constexpr std::int64_t kUtilisation = 10'000;  // as of the links of a plan

std::vector<std::string> row_of(std::int64_t tensors, std::int64_t bytes, const TensorUse& use,
                                const Bound* alone) {
  return {std::to_string(tensors),
          bytes_text(bytes),
          bytes_text(use.received_bytes),
          time_text(use.first_ps),
          time_text(use.last_ps),
          alone == nullptr ? "-" : duration_text(alone->time_ps()),
          alone == nullptr ? "-" : std::string(text(alone->limited_by()))};
}

Json kind_json(const GroupFacts& kind) {
  const Layout &from = kind.first.source(), &to = kind.first.destination();
  return {{"name", or_null(kind.name)},
          {"text", kind.text},
          {"shape", list_json(kind.first.shape(), [](std::int64_t extent) { return extent; })},
          {"dtype", text(kind.first.dtype())},
          {"mesh", shape_text(from.mesh())},
          {"ranks", ranks_text(kind.source_ranks)},
          {"from", from.placements_text()},
          {"to_mesh", shape_text(to.mesh())},
          {"to_ranks", ranks_text(kind.destination_ranks)},
          {"to", to.placements_text()},
          {"count", kind.tensors.size()},
          {"tensors", kind.tensors},
          {"bytes", kind.bytes},
          {"bytes_received", kind.use.received_bytes},
          {"least_bytes_received", kind.least_received_bytes},
          {"first_ps", or_null(kind.use.first_ps)},
          {"last_ps", or_null(kind.use.last_ps)},
          {"bound_ps", kind.bound.time_ps()},
          {"limited_by", text(kind.bound.limited_by())}};
}

}  // namespace

std::string groups_table(std::span<const GroupFacts> groups, std::string_view what, bool all,
                         std::size_t width) {
  if (groups.empty()) return {};
  Table table(
      {">count", ">bytes", ">received", ">first byte", ">last byte", ">bound, alone", "limit"});
  std::size_t shown =
      all || groups.size() <= kGroupsShown + 1 ? groups.size() : kGroupsShown;  // no sum of one
  for (const GroupFacts& group : groups.first(shown)) {
    table.add_row(row_of(static_cast<std::int64_t>(group.tensors.size()), group.bytes, group.use,
                         &group.bound));
    if (!group.name.empty()) table.add_note(group.name);
    table.add_note(group.text);
  }
  if (shown == groups.size()) return fmt::format("\n{}", table.text(width));
  std::int64_t tensors = 0;
  Int128 bytes = 0;
  TensorUse use;
  for (const GroupFacts& group : groups.subspan(shown)) {
    tensors += static_cast<std::int64_t>(group.tensors.size());
    bytes += group.bytes;
    use += group.use;
  }
  table.add_row(
      row_of(tensors, static_cast<std::int64_t>(std::min(bytes, Int128{kMaxBytes})), use, nullptr));
  table.add_note(fmt::format("{} more {}s (-v shows every {})", groups.size() - shown, what, what));
  return fmt::format("\n{}", table.text(width));
}

void add_job(const JobFacts& job, std::int64_t time_ps, Json& out) {
  out["kinds"] = list_json(job.kinds, kind_json);
  if (!job.full) {
    out["full_links"] = nullptr;
    return;
  }
  const FullLinks& full = *job.full;
  out["full_links"] = {
      {"kind", full.kind},
      {"full", full.full},
      {"used", full.used},
      {"fullest", full.fullest.name},
      {"utilisation", decimal_json(utilisation(full.fullest, time_ps, kUtilisation))}};
}

void add_limits(const JobFacts& job, const LostTime& lost, std::int64_t time_ps, Facts& facts) {
  if (job.full) facts.add("fullest links", full_links_text(*job.full, time_ps));
  if (lost.by != LostTime::By::Nothing) facts.add("lost to", text(lost));
}

}  // namespace reshard::sim
