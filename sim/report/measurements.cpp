// SPDX-License-Identifier: BSD-3-Clause
// Derives the parts of a plan, and writes and reads measurement files. The reader does not trust
// its input: a file that does not hold exactly what its header promises is refused at the wrong
// line.
#include "sim/report/measurements.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/schedule/rank_schedule.h"
#include "sim/inputs/json_reader.h"
#include "sim/report/json.h"
#include "sim/trace/line_reader.h"

namespace reshard::sim {

namespace {

std::int64_t bytes_of(const RankSchedule& schedule, const Place& at, const DimVector& extents) {
  return element_count(extents) * size_bytes(schedule.buffer(at.buffer).dtype);
}

MeasuredPart part_of(const Plan& plan, const RankSchedule& schedule, const Launch& launch) {
  MeasuredPart out{static_cast<std::int32_t>(launch.step), plan.rank_of(schedule.slot),
                   std::string(kind_text(plan.steps[launch.step]))};
  for (Slot slot : launch.group) out.group.push_back(plan.rank_of(slot));
  if (const auto* messages = std::get_if<Messages>(&launch.work)) {
    for (auto [list, to] :
         {std::pair{&messages->sends, &out.sent}, {&messages->receives, &out.received}})
      for (const Messages::PeerMessage& message : *list) {
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
  return list_json(messages, [](const auto& message) -> Json {
    return {to_int(message.first), message.second};
  });
}

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json header_json(const Measurements& measurements) {
  return {{"reshard_measurements", 1},         {"version", measurements.version},
          {"backend", measurements.backend},   {"library", measurements.library},
          {"request", measurements.request},   {"planner", measurements.planner},
          {"topology", measurements.topology}, {"ranks", ranks_text(measurements.ranks)},
          {"warm_up", measurements.warm_up},   {"iterations", measurements.runs.size()}};
}

Json part_json(const MeasuredPart& part) {
  Json out{{"step", part.step}, {"rank", to_int(part.rank)}, {"kind", part.kind}};
  if (part.kind == "exchange") {
    out["sent"] = messages_json(part.sent);
    out["received"] = messages_json(part.received);
  } else {
    if (!part.group.empty()) out["group"] = ranks_text(part.group);
    out["bytes"] = part.bytes;
  }
  return out;
}

constexpr std::array<std::string_view, 3> kLocalKinds{"copy", "fill", "reduce"};
constexpr std::array<std::string_view, 4> kCollectiveKinds{"all_gather", "reduce_scatter",
                                                           "all_reduce", "all_to_all"};

template <class List, class Value>
bool is_one_of(const List& list, const Value& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

class MeasurementsReader {
 public:
  MeasurementsReader(std::istream& in, const std::string& file) : lines_(in, file), file_(file) {}

  Measurements read() {
    std::string line;
    while (lines_.next(line)) {
      if (line.find_first_not_of(" \t") == std::string::npos) continue;
      place_ = fmt::format("{}:{}", file_, lines_.line_number());
      TraceJson json = parse_json_line(line, place_);
      TraceFields fields(json, place_);
      if (!headed_)
        read_header(fields);
      else if (!fields.has("iteration"))
        read_part(fields);
      else if (fields.has("time_ps"))
        read_run(fields);
      else
        read_span(fields);
    }
    if (!headed_)
      throw InputError(
          fmt::format("{}: expected a header such as {{\"reshard_measurements\": 1}} as the first "
                      "line, found an empty file",
                      file_));
    end_run();
    if (static_cast<std::int64_t>(out_.runs.size()) != runs_promised_)
      throw InputError(fmt::format("{}: iterations: expected {}, as in the header, found {}", file_,
                                   runs_promised_, out_.runs.size()));
    return std::move(out_);
  }

 private:
  void read_header(TraceFields& fields) {
    headed_ = true;
    fields.integer("reshard_measurements", 1, 1);
    out_.version = fields.string("version", "reshard's version");
    out_.backend = fields.string("backend", "a backend such as \"mpi\"");
    out_.library = fields.string("library", "the backend's library and its version");
    out_.request = fields.string("request", "a request such as \"f32[8] S(0) on 2 -> R\"");
    out_.planner = fields.string("planner", "a planner such as \"p2p\"");
    out_.topology = fields.string("topology", "a topology such as \"dgx-h100:1\"");
    out_.ranks = fields.ranks("ranks");
    if (!std::is_sorted(out_.ranks.begin(), out_.ranks.end()))
      throw InputError(place_ + ": ranks: expected ascending ranks, found others");
    out_.warm_up = fields.integer("warm_up", 0, kMaxRuns);
    runs_promised_ = fields.integer("iterations", 1, kMaxRuns);
    fields.refuse_others("the header");
  }

  Rank rank_of(TraceFields& fields) {
    Rank rank{static_cast<std::int32_t>(fields.integer("rank", 0, kMaxRanks - 1))};
    if (!is_rank(rank))
      throw InputError(fmt::format("{}: rank: expected one of the header's ranks, found {}", place_,
                                   to_int(rank)));
    return rank;
  }
  bool is_rank(Rank rank) const {
    return std::binary_search(out_.ranks.begin(), out_.ranks.end(), rank);
  }

  void read_part(TraceFields& fields) {
    if (!out_.runs.empty())
      throw InputError(
          place_ +
          ": iteration: expected only lines of iterations after the first of them, found another");
    MeasuredPart part{static_cast<std::int32_t>(
                          fields.integer("step", 0, std::numeric_limits<std::int32_t>::max())),
                      rank_of(fields)};
    if (!out_.parts.empty() && std::pair(out_.parts.back().step, out_.parts.back().rank) >=
                                   std::pair(part.step, part.rank))
      throw InputError(fmt::format(
          "{}: expected parts in ascending order of step and rank, found step {}, rank {}", place_,
          part.step, to_int(part.rank)));
    part.kind = fields.string("kind", "the kind of a step");
    if (part.kind == "exchange") {
      part.sent = messages(fields, "sent", part.rank);
      part.received = messages(fields, "received", part.rank);
    } else if (is_one_of(kCollectiveKinds, part.kind)) {
      part.group = group(fields, part.rank);
      part.bytes = fields.integer("bytes", 0, kMaxBytes);
    } else if (is_one_of(kLocalKinds, part.kind)) {
      part.bytes = fields.integer("bytes", 0, kMaxBytes);
    } else {
      throw InputError(
          fmt::format("{}: kind: expected the kind of a step such as \"exchange\", found {}",
                      place_, reshard::quoted(part.kind)));
    }
    fields.refuse_others("a part of a step");
    out_.parts.push_back(std::move(part));
  }

  std::vector<Rank> group(TraceFields& fields, Rank rank) {
    std::vector<Rank> ranks = fields.ranks("group");
    named_ranks_ += static_cast<std::int64_t>(ranks.size());
    if (named_ranks_ > kMaxNamedRanks)
      throw InputError(
          fmt::format("{}: group: expected at most {} ranks in all groups together, found more",
                      place_, kMaxNamedRanks));
    bool known =
        std::all_of(ranks.begin(), ranks.end(), [&](Rank member) { return is_rank(member); });
    if (!known || !is_one_of(ranks, rank))
      throw InputError(
          place_ +
          ": group: expected ranks of the header, the part's own among them, found others");
    return ranks;
  }

  std::vector<std::pair<Rank, std::int64_t>> messages(TraceFields& fields, const char* key,
                                                      Rank own) {
    constexpr std::string_view kWhat =
        "messages such as [[1, 4096], [2, 4096]]: other ranks, ascending, and bytes above 0";
    std::vector<std::pair<Rank, std::int64_t>> out;
    const TraceJson& list = fields.required(key, kWhat);
    if (!list.is_array()) fields.fail(key, kWhat, list);
    for (const TraceJson& message : list) {
      if (!message.is_array() || message.size() != 2) fields.fail(key, kWhat, message);
      std::optional<std::int64_t> peer = integer_in(message[0], 0, kMaxRanks - 1),
                                  bytes = integer_in(message[1], 1, kMaxBytes);
      if (!peer || !bytes) fields.fail(key, kWhat, message);
      Rank rank{static_cast<std::int32_t>(*peer)};
      if (!is_rank(rank) || rank == own || (!out.empty() && out.back().first >= rank))
        fields.fail(key, kWhat, message);
      out.emplace_back(rank, *bytes);
    }
    return out;
  }

  // Reads the line that starts a run.
  void read_run(TraceFields& fields) {
    end_run();
    std::int64_t next = static_cast<std::int64_t>(out_.runs.size());
    if (next >= runs_promised_)
      throw InputError(
          fmt::format("{}: iteration: expected {} iterations, as in the header, found more", place_,
                      runs_promised_));
    fields.integer("iteration", next, next);
    Timeline run;
    run.end_ps = fields.integer("time_ps", 0, kMaxDurationPs);
    fields.refuse_others("an iteration");
    out_.runs.push_back(std::move(run));
  }

  void read_span(TraceFields& fields) {
    if (out_.runs.empty())
      throw InputError(place_ +
                       ": time_ps: expected the iteration's own line first, found that of a part");
    std::vector<Span>& spans = out_.runs.back().spans;
    if (spans.size() == out_.parts.size())
      throw InputError(fmt::format("{}: expected {} parts of the iteration, found more", place_,
                                   out_.parts.size()));
    const MeasuredPart& part = out_.parts[spans.size()];
    std::int64_t own = static_cast<std::int64_t>(out_.runs.size()) - 1;
    fields.integer("iteration", own, own);
    fields.integer("step", part.step, part.step);
    fields.integer("rank", to_int(part.rank), to_int(part.rank));
    std::int64_t start_ps = fields.integer("start_ps", 0, kMaxDurationPs);
    std::int64_t end_ps = fields.integer("end_ps", start_ps, kMaxDurationPs);
    fields.refuse_others("a part of an iteration");
    spans.push_back({OpId{0}, part.step, part.rank, start_ps, end_ps});
  }

  void end_run() const {
    if (out_.runs.empty() || out_.runs.back().spans.size() == out_.parts.size()) return;
    throw InputError(fmt::format("{}: expected {} parts of iteration {}, found {}", place_,
                                 out_.parts.size(), out_.runs.size() - 1,
                                 out_.runs.back().spans.size()));
  }

  LineReader lines_;
  const std::string& file_;
  Measurements out_;
  std::string place_;
  bool headed_ = false;
  std::int64_t runs_promised_ = 0, named_ranks_ = 0;
};

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
                  "a run whose number of spans differs from the plan's parts");
    out << fmt::format("{{\"iteration\":{},\"time_ps\":{}}}\n", i, run.end_ps);
    for (std::size_t p = 0; p < run.spans.size(); ++p) {
      const Span& span = run.spans[p];
      RESHARD_CHECK(
          span.step == measurements.parts[p].step && span.rank == measurements.parts[p].rank,
          "spans in an order other than that of the parts");
      out << fmt::format(
          "{{\"iteration\":{},\"step\":{},\"rank\":{},\"start_ps\":{},\"end_ps\":{}}}\n", i,
          span.step, to_int(span.rank), span.start_ps, span.end_ps);
    }
  }
}

Measurements parse_measurements(std::istream& in, const std::string& file) {
  return MeasurementsReader(in, file).read();
}

}  // namespace reshard::sim
