// SPDX-License-Identifier: BSD-3-Clause
// The writing side, and what a plan's parts carry.
#include "sim/report/measurements.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/errors.h"
#include "core/schedule/rank_schedule.h"

namespace reshard::sim {

namespace {

using Json = nlohmann::ordered_json;

std::int64_t bytes_of(const RankSchedule& schedule, const Place& at, const DimVector& extents) {
  return element_count(extents) * size_bytes(schedule.buffer(at.buffer).dtype);
}

MeasuredPart part_of(const Plan& plan, const RankSchedule& schedule, const Launch& launch) {
  MeasuredPart out{static_cast<std::int32_t>(launch.step),
                   plan.rank_of(schedule.slot),
                   std::string(kind_text(plan.steps[to_index(launch.step)])),
                   {},
                   {},
                   {},
                   0};
  for (Slot slot : launch.group) out.group.push_back(plan.rank_of(slot));
  if (const auto* messages = std::get_if<Messages>(&launch.work)) {
    for (auto [list, to] :
         {std::pair{&messages->sends, &out.sent}, {&messages->receives, &out.received}})
      for (const Messages::Message& message : *list) {
        auto& [peer, bytes] = to->emplace_back(plan.rank_of(message.peer), 0);
        for (const PlacedMove& move : message.moves)
          bytes += bytes_of(schedule, move.from, move.extents);
      }
  } else if (const auto* native = std::get_if<NativeCollective>(&launch.work)) {
    out.bytes = count_of(*native, static_cast<std::int32_t>(launch.group.size())) *
                size_bytes(schedule.buffer(native->input.at.buffer).dtype);
  } else {
    for_each_box(launch, [&](const PlacedBox& box, bool is_write) {
      if (is_write) out.bytes += bytes_of(schedule, box.at, box.extents);
    });
  }
  return out;
}

Json messages_json(const std::vector<std::pair<Rank, std::int64_t>>& messages) {
  Json out = Json::array();
  for (const auto& [peer, bytes] : messages) out.push_back({to_int(peer), bytes});
  return out;
}

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json header_json(const Measurements& measurements) {
  Json out;
  out["reshard_measurements"] = 1;
  out["version"] = measurements.version;
  out["backend"] = measurements.backend;
  out["library"] = measurements.library;
  out["request"] = measurements.request;
  out["planner"] = measurements.planner;
  out["topology"] = measurements.topology;
  out["ranks"] = ranks_text(measurements.ranks);
  out["warm_up"] = measurements.warm_up;
  out["iterations"] = measurements.runs.size();
  return out;
}

Json part_json(const MeasuredPart& part) {
  Json out;
  out["step"] = part.step;
  out["rank"] = to_int(part.rank);
  out["kind"] = part.kind;
  if (part.kind == "exchange") {
    out["sent"] = messages_json(part.sent);
    out["received"] = messages_json(part.received);
  } else {
    if (!part.group.empty()) out["group"] = ranks_text(part.group);
    out["bytes"] = part.bytes;
  }
  return out;
}

}  // namespace

std::vector<MeasuredPart> parts_of(const Plan& plan) {
  std::vector<Slot> slots(plan.slot_count());
  std::iota(slots.begin(), slots.end(), 0);
  std::vector<MeasuredPart> out;
  for (const RankSchedule& schedule : rank_schedules(plan, slots, {}))
    for (const Launch& launch : schedule.launches) out.push_back(part_of(plan, schedule, launch));
  std::stable_sort(out.begin(), out.end(),
                   [](const MeasuredPart& a, const MeasuredPart& b) { return a.step < b.step; });
  return out;
}

void write_measurements(std::ostream& out, const Measurements& measurements) {
  out << line_of(header_json(measurements));
  for (const MeasuredPart& part : measurements.parts) out << line_of(part_json(part));
  for (std::size_t i = 0; i < measurements.runs.size(); ++i) {
    const Timeline& run = measurements.runs[i];
    RESHARD_CHECK(run.spans.size() == measurements.parts.size(),
                  "a run with another number of spans than the plan has parts");
    out << fmt::format("{{\"iteration\":{},\"time_ps\":{}}}\n", i, run.end_ps);
    for (std::size_t p = 0; p < run.spans.size(); ++p) {
      const Span& span = run.spans[p];
      RESHARD_CHECK(
          span.step == measurements.parts[p].step && span.rank == measurements.parts[p].rank,
          "spans in another order than the parts");
      out << fmt::format(
          "{{\"iteration\":{},\"step\":{},\"rank\":{},\"start_ps\":{},\"end_ps\":{}}}\n", i,
          span.step, to_int(span.rank), span.start_ps, span.end_ps);
    }
  }
}

}  // namespace reshard::sim
