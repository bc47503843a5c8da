// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/run_facts.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/units.h"
#include "sim/study/critical_path.h"

namespace reshard::sim {

std::string text(const std::vector<PhaseTime>& phases) {
  std::string out;
  for (const PhaseTime& phase : phases)
    out += (out.empty() ? "" : ", ") + phase.name + " " + duration_text(phase.time_ps);
  return out;
}

std::vector<LinkUse> busiest_links(const Timeline& timeline, const Topology& topology,
                                   std::size_t limit) {
  struct LinkBytes {
    std::int64_t bytes, capacity;
    std::size_t id;
  };
  std::vector<LinkBytes> candidates;
  for (std::size_t id = 0; id < timeline.resources.size(); ++id)
    if (timeline.resources[id].bytes > 0)
      candidates.push_back(
          {timeline.resources[id].bytes, topology.resource_bytes_per_s(id_of<ResourceId>(id)), id});
  // Compares bytes_a / capacity_a with bytes_b / capacity_b exactly.
  auto busier = [](const LinkBytes& a, const LinkBytes& b) {
    Int128 left = Int128{a.bytes} * b.capacity, right = Int128{b.bytes} * a.capacity;
    return left != right ? left > right : a.id < b.id;
  };
  std::size_t count = std::min(limit, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count),
                    candidates.end(), busier);

  std::vector<LinkUse> out;
  for (std::size_t i = 0; i < count; ++i) {
    const LinkBytes& c = candidates[i];
    out.push_back({topology.resource_name(ResourceId{static_cast<std::int32_t>(c.id)}), c.bytes,
                   timeline.resources[c.id].busy_ps, c.capacity});
  }
  return out;
}

std::int64_t utilisation(const LinkUse& link, std::int64_t end_ps, std::int64_t scale) {
  if (end_ps == 0) return 0;
  Int128 possible = Int128{link.bytes_per_s} * end_ps;  // in 10^-12 byte
  Int128 carried = Int128{link.bytes} * 1'000'000'000'000;
  // At most 2^62 * 10^12 * 2 * 10^6 < 2^127.
  return static_cast<std::int64_t>((carried * 2 * scale + possible) / (2 * possible));
}

namespace {

// Keeps the longest parts (the earlier of equally long ones); the others are merged into the kept
// part before them.
std::vector<PathPart> coarser(const std::vector<PathPart>& path, std::size_t most_parts) {
  if (path.size() <= most_parts) return path;
  std::vector<std::size_t> longest(path.size());
  std::iota(longest.begin(), longest.end(), 0);
  auto length_ps = [&](std::size_t i) { return path[i].end_ps - path[i].start_ps; };
  std::sort(longest.begin(), longest.end(), [&](std::size_t a, std::size_t b) {
    return length_ps(a) != length_ps(b) ? length_ps(a) > length_ps(b) : a < b;
  });
  longest.resize(most_parts);
  std::sort(longest.begin(), longest.end());
  std::vector<PathPart> out;
  for (std::size_t i : longest) {
    PathPart part = path[i];
    part.start_ps = out.empty() ? 0 : part.start_ps;
    if (!out.empty()) out.back().end_ps = part.start_ps;
    if (!out.empty() && out.back().differs_in_time_only(part)) continue;
    out.push_back(part);
  }
  out.back().end_ps = path.back().end_ps;
  return out;
}

}  // namespace

PathFacts path_facts(const std::optional<std::vector<PathPart>>& path, const Topology& topology,
                     std::size_t most_parts) {
  PathFacts out;
  if (!path) return out;
  out.recorded = true;
  for (const PathPart& part : coarser(*path, most_parts))
    out.parts.push_back(
        {part.op, part.step, cause_text(part, topology), part.start_ps, part.end_ps});
  std::map<std::pair<WaitedFor, ResourceId>, PathFacts::Cause> sums;
  for (const PathPart& part : *path) {
    auto [at, added] = sums.try_emplace({part.cause, part.resource});
    if (added) at->second = {cause_text(part, topology), 0};
    at->second.time_ps += part.end_ps - part.start_ps;
  }
  for (const auto& [key, sum] : sums) out.causes.push_back(sum);
  std::sort(out.causes.begin(), out.causes.end(),
            [](const PathFacts::Cause& a, const PathFacts::Cause& b) {
              return a.time_ps != b.time_ps ? a.time_ps > b.time_ps : a.name < b.name;
            });
  return out;
}

std::vector<ClassUse> use_by_class(const Timeline& timeline, const Topology& topology) {
  std::array<ClassUse, 4> classes{};
  for (std::size_t rule = 0; rule < timeline.routes.size(); ++rule) {
    Transport transport = topology.node().rules[rule].transport;
    ClassUse& use = classes[to_index(transport)];
    use.transport = transport;
    add_bytes(use.bytes, timeline.routes[rule].bytes);
    use.flows += timeline.routes[rule].flows;
  }
  std::vector<ClassUse> out;
  for (const ClassUse& use : classes)
    if (use.flows > 0) out.push_back(use);
  return out;
}

IndexVector<std::int32_t, Extent> extents_of(const Timeline& timeline, std::size_t step_count) {
  IndexVector<std::int32_t, Extent> out(step_count);
  for (const Span& span : timeline.spans) {
    RESHARD_CHECK(
        span.step >= 0 && to_index(span.step) < step_count && span.start_ps <= span.end_ps,
        "a span of no step");
    Extent& extent = out[span.step];
    extent.start_ps = std::min(extent.start_ps.value_or(span.start_ps), span.start_ps);
    extent.end_ps = std::max(extent.end_ps.value_or(span.end_ps), span.end_ps);
  }
  return out;
}

std::vector<StageRow> stage_rows(const Plan& plan, std::span<const std::int64_t> received_per_step,
                                 std::span<const Span> spans) {
  std::vector<StageRow> out;
  for (const Stage& stage : plan.stages) {
    const Request& first = plan.request(stage.tensors.front());
    std::int64_t tensors = 0;
    for (TensorId tensor : stage.tensors) tensors += plan.request(tensor).tensors();
    out.push_back(
        {to_index(tensors), first.name().empty() ? first.text() : first.name(), stage.after});
  }
  if (out.empty()) return out;
  IndexVector<StepId, std::int32_t> stage_of = stage_of_steps(plan);
  for (std::size_t step = 0; step < plan.steps.size(); ++step) {
    StageRow& row = out[to_index(stage_of[step])];
    ++row.steps;
    row.bytes += received_per_step[step];
  }
  for (const Span& span : spans) {
    Extent& extent = out[to_index(stage_of[span.step])].extent;
    extent.start_ps = std::min(extent.start_ps.value_or(span.start_ps), span.start_ps);
    extent.end_ps = std::max(extent.end_ps.value_or(span.end_ps), span.end_ps);
  }
  return out;
}

}  // namespace reshard::sim
