// SPDX-License-Identifier: BSD-3-Clause
// The writing side, and what a plan's parts carry.
#include "sim/report/measurements.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/errors.h"
#include "core/schedule/accounting.h"
#include "core/schedule/rank_program.h"
#include "core/schedule/transfers.h"

namespace reshard::sim {

namespace {

using Json = nlohmann::ordered_json;

class Parts {
 public:
  explicit Parts(const Plan& plan) : plan_(plan), size_(size_bytes(plan.request().dtype())) {}

  MeasuredPart part(Slot slot, const RankStep& rank_step) const {
    const Step& step = plan_.steps[to_index(rank_step.step)];
    MeasuredPart out{static_cast<std::int32_t>(rank_step.step),
                     rank(slot),
                     std::string(kind_text(step)),
                     {},
                     {},
                     {},
                     0};
    std::visit([&](const auto& body) { add(body, rank_step, out); }, step.body);
    return out;
  }

 private:
  Rank rank(Slot slot) const { return plan_.ranks[static_cast<std::size_t>(slot)]; }

  void add(const CopyStep& body, const RankStep& step, MeasuredPart& out) const {
    for (std::uint32_t p = step.first_part; p < step.first_part + step.part_count; ++p) {
      MoveRange moves = body.parts[p].moves;
      for (std::uint32_t i = moves.first; i < moves.first + moves.count; ++i)
        out.bytes += body.moves.elements(i) * size_;
    }
  }
  void add(const FillStep& body, const RankStep& step, MeasuredPart& out) const {
    for (std::uint32_t p = step.first_part; p < step.first_part + step.part_count; ++p)
      out.bytes += body.parts[p].box.volume() * size_;
  }
  void add(const ReduceStep& body, const RankStep& step, MeasuredPart& out) const {
    for (std::uint32_t p = step.first_part; p < step.first_part + step.part_count; ++p)
      out.bytes += element_count(body.parts[p].extents) * size_;
  }
  void add(const ExchangeStep& body, const RankStep& step, MeasuredPart& out) const {
    for (std::uint32_t i : step.sends)
      out.sent.emplace_back(rank(body.messages[i].destination),
                            message_bytes(plan_, body, body.messages[i]));
    for (std::uint32_t i : step.receives)
      out.received.emplace_back(rank(body.messages[i].source),
                                message_bytes(plan_, body, body.messages[i]));
  }
  void add(const CollectiveStep& body, const RankStep& step, MeasuredPart& out) const {
    std::span<const Slot> group = body.group(static_cast<std::size_t>(step.group));
    for (Slot slot : group) out.group.push_back(rank(slot));
    out.bytes = expansion_elements(plan_, body, static_cast<std::size_t>(step.group)) * size_;
  }

  const Plan& plan_;
  std::int64_t size_;
};

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
  Parts parts(plan);
  std::vector<MeasuredPart> out;
  for (const RankProgram& program : rank_programs(plan, slots))
    for (const RankStep& step : program.steps) out.push_back(parts.part(program.slot, step));
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
