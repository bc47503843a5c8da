// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/writers/perfetto.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <queue>
#include <utility>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/report/time_tables.h"

namespace reshard::sim {

namespace {

constexpr int kSendThread = 1, kReceiveThread = 2, kFirstExtraThread = 3;
constexpr std::int64_t kLinksPid = 100'000'000;     // above every rank
constexpr std::int64_t kMeasuredPid = 200'000'000;  // added to a measured rank

std::int64_t to_ns(std::int64_t ps) { return ps / 1000; }
std::string ns_text(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }
std::string in_quotes(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Mean rate between two knots in GB/s.
double mean_rate(const WorkDone& from, const WorkDone& to) {
  return static_cast<double>(to.work - from.work) / static_cast<double>(to.time_ps - from.time_ps) /
         1e9;
}

// Writes one event per line, separated by commas.
class EventWriter {
 public:
  explicit EventWriter(std::ostream& out) : out_(out) {}
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    line_.clear();
    if (!first_) line_ += ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(line_), format, std::forward<Args>(args)...);
    out_ << line_;
  }
  void process(std::int64_t pid, const std::string& name, std::int64_t sort) {
    add(R"({{"ph": "M", "name": "process_name", "pid": {}, "tid": 0, "args": {{"name": {}}}}})",
        pid, in_quotes(name));
    add(R"({{"ph": "M", "name": "process_sort_index", "pid": {}, "tid": 0, "args": )"
        R"({{"sort_index": {}}}}})",
        pid, sort);
  }
  void thread(std::int64_t pid, int tid, const std::string& name) {
    add(R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": {}}}}})",
        pid, tid, in_quotes(name));
    add(R"({{"ph": "M", "name": "thread_sort_index", "pid": {}, "tid": {}, "args": )"
        R"({{"sort_index": {}}}}})",
        pid, tid, tid);
  }

 private:
  std::ostream& out_;
  std::string line_;
  bool first_ = true;
};

struct Drawing {
  const Workload& workload;
  const std::vector<std::string>& labels;
  const Timeline& timeline;
  const Topology& topology;
  EventWriter& events;
  std::size_t most_stretches = kMaxStretchesDrawn;  // of a rank in one direction

  std::string part_category(OpId op) const;
  void ranks();
  void measured(const Timeline& run);
  void steps(std::int64_t pid, const std::vector<const Span*>& spans);
  void traffic(Rank rank, int thread, const char* name, std::vector<const FlowSpan*> flows);
  void flows();
  void links();
};

std::string Drawing::part_category(OpId op) const {
  const auto& body = workload.operations[to_index(op)].body;
  if (std::holds_alternative<RunPlan>(body)) return "step";
  if (std::holds_alternative<Setup>(body)) return "setup";
  return std::holds_alternative<Compute>(body) ? "compute" : "communication";
}

void Drawing::ranks() {
  std::map<Rank, std::vector<const Span*>> spans;
  std::map<Rank, std::vector<const FlowSpan*>> sent, received;
  for (const Span& span : timeline.spans) spans[span.rank].push_back(&span);
  for (const FlowSpan& flow : timeline.flows) {
    sent[flow.source].push_back(&flow);
    received[flow.destination].push_back(&flow);
    spans[flow.source];
    spans[flow.destination];
  }
  most_stretches =
      std::max<std::size_t>(kMaxStretchesDrawn / (2 * std::max<std::size_t>(spans.size(), 1)), 1);
  for (auto& [rank, own] : spans) {
    std::int32_t node = topology.node_of(rank),
                 local = to_int(rank) - node * topology.node().devices;
    events.process(to_int(rank), fmt::format("rank {} (node{} gpu{})", to_int(rank), node, local),
                   2 * to_int(rank));
    steps(to_int(rank), own);
    traffic(rank, kSendThread, "send", sent[rank]);
    traffic(rank, kReceiveThread, "recv", received[rank]);
  }
}

void Drawing::measured(const Timeline& run) {
  std::map<Rank, std::vector<const Span*>> spans;
  for (const Span& span : run.spans) spans[span.rank].push_back(&span);
  for (const auto& [rank, own] : spans) {
    std::int64_t pid = kMeasuredPid + to_int(rank);
    events.process(pid, fmt::format("measured rank {}", to_int(rank)), 2 * to_int(rank) + 1);
    steps(pid, own);
  }
}

void Drawing::steps(std::int64_t pid, const std::vector<const Span*>& unsorted) {
  std::vector<const Span*> spans = unsorted;
  std::stable_sort(spans.begin(), spans.end(), [](const Span* a, const Span* b) {
    return to_ns(a->start_ps) < to_ns(b->start_ps);
  });
  std::vector<Slice> slices;
  for (const Span* span : spans) slices.push_back({to_ns(span->start_ps), to_ns(span->end_ps)});
  std::vector<std::int32_t> lanes = pack_lanes(slices);

  events.thread(pid, 0, "plan steps");
  std::int32_t named = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    int thread = lanes[i] == 0 ? 0 : kFirstExtraThread + lanes[i] - 1;
    if (lanes[i] > named) {
      named = lanes[i];
      events.thread(pid, thread, "plan steps " + std::to_string(named + 1));
    }
    const Span& span = *spans[i];
    events.add(
        R"({{"ph": "X", "name": {}, "cat": "{}", "pid": {}, "tid": {}, "ts": {}, "dur": {}, )"
        R"("args": {{"op": {}, "step": {}, "start_ps": {}, "end_ps": {}}}}})",
        in_quotes(part_name(workload, labels, span.op, span.step)), part_category(span.op), pid,
        thread, ns_text(slices[i].start), ns_text(slices[i].end - slices[i].start),
        to_index(span.op), span.step, span.start_ps, span.end_ps);
  }
}

void Drawing::traffic(Rank rank, int thread, const char* name, std::vector<const FlowSpan*> flows) {
  if (flows.empty()) return;
  std::stable_sort(flows.begin(), flows.end(), [](const FlowSpan* a, const FlowSpan* b) {
    return to_ns(a->start_ps) < to_ns(b->start_ps);
  });
  std::vector<Slice> slices;
  for (const FlowSpan* flow : flows) slices.push_back({to_ns(flow->start_ps), to_ns(flow->end_ps)});
  events.thread(to_int(rank), thread, name);
  std::vector<Stretch> drawn = stretches(slices);
  for (std::int64_t gap = 1; drawn.size() > most_stretches; gap *= 2)
    drawn = stretches(slices, gap);
  for (const Stretch& stretch : drawn) {
    std::int64_t bytes = 0;
    for (std::int64_t i = stretch.first; i < stretch.first + stretch.count; ++i)
      bytes += flows[to_index(i)]->bytes;
    events.add(
        R"({{"ph": "X", "name": "{}", "cat": "flow", "pid": {}, "tid": {}, "ts": {}, "dur": {}, )"
        R"("args": {{"flows": {}, "bytes": {}}}}})",
        name, to_int(rank), thread, ns_text(stretch.start), ns_text(stretch.end - stretch.start),
        stretch.count, bytes);
  }
}

void Drawing::flows() {
  if (timeline.flows.size() > kMaxFlowsDrawn) return;
  std::int64_t id = 0;
  for (const FlowSpan& flow : timeline.flows) {
    ++id;
    int source = to_int(flow.source), destination = to_int(flow.destination);
    std::int64_t start = to_ns(flow.start_ps), end = to_ns(flow.end_ps);
    std::string path;
    for (ResourceId resource : topology.route(flow.source, flow.destination).resources)
      path += fmt::format("{}{}", path.empty() ? "" : " ", topology.resource_name(resource));
    events.add(
        R"({{"ph": "b", "name": "{0} to {1}", "cat": "flow", "id": {2}, "pid": {0}, "tid": {3}, )"
        R"("ts": {4}, "args": {{"src": {0}, "dst": {1}, "bytes": {5}, "op": {6}, "step": {7}, )"
        R"("path": {8}}}}})",
        source, destination, id, kSendThread, ns_text(start), flow.bytes, to_index(flow.op),
        flow.step, in_quotes(path));
    events.add(
        R"({{"ph": "e", "name": "{0} to {1}", "cat": "flow", "id": {2}, "pid": {0}, "tid": {3}, )"
        R"("ts": {4}}})",
        source, destination, id, kSendThread, ns_text(end));
    // An arrow ends 1 ns before the end of its slice: at the very end it would bind to the next
    // one.
    events.add(
        R"({{"ph": "s", "name": "transfer", "cat": "transfer", "id": {}, "pid": {}, "tid": {}, )"
        R"("ts": {}}})",
        id, source, kSendThread, ns_text(start));
    events.add(
        R"({{"ph": "f", "bp": "e", "name": "transfer", "cat": "transfer", "id": {}, "pid": {}, )"
        R"("tid": {}, "ts": {}}})",
        id, destination, kReceiveThread, ns_text(std::max(start, end - 1)));
  }
}

// Every so many of the knots, and the last. Knots hold work, so that no bytes are lost.
std::vector<WorkDone> every(std::size_t step, const std::vector<WorkDone>& knots) {
  std::vector<WorkDone> out;
  for (std::size_t i = 0; i < knots.size(); ++i)
    if (i % step == 0 || i + 1 == knots.size()) out.push_back(knots[i]);
  return out;
}

void Drawing::links() {
  bool any = false;
  std::size_t all = 0;
  for (const std::vector<WorkDone>& knots : timeline.work) all += knots.size();
  for (std::size_t link = 0; link < timeline.work.size(); ++link) {
    std::vector<WorkDone> knots = every(all / kMaxRatesDrawn + 1, timeline.work[link]);
    if (knots.empty()) continue;
    if (!std::exchange(any, true)) events.process(kLinksPid, "links", kLinksPid);
    std::string name = in_quotes(topology.resource_name(id_of<ResourceId>(link)));
    std::optional<double> last;
    for (std::size_t i = 0; i < knots.size(); ++i) {
      double rate = i + 1 < knots.size() ? mean_rate(knots[i], knots[i + 1]) : 0;
      if (std::exchange(last, rate) == rate) continue;
      events.add(
          R"({{"ph": "C", "name": {}, "pid": {}, "tid": 0, "ts": {}, "args": {{"GB/s": {}}}}})",
          name, kLinksPid, decimal_text(knots[i].time_ps, 1'000'000, 6), rate);
    }
  }
}

}  // namespace

std::vector<std::int32_t> pack_lanes(const std::vector<Slice>& slices) {
  // Busy lanes by the end of their last slice; free lanes by number.
  using Busy = std::pair<std::int64_t, std::int32_t>;
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> free_lanes;
  std::int32_t lanes = 0;
  std::vector<std::int32_t> out;
  out.reserve(slices.size());
  for (std::size_t i = 0; i < slices.size(); ++i) {
    RESHARD_CHECK(i == 0 || slices[i - 1].start <= slices[i].start, "slices out of order");
    while (!busy.empty() && busy.top().first <= slices[i].start) {
      free_lanes.push(busy.top().second);
      busy.pop();
    }
    std::int32_t lane = lanes;
    if (free_lanes.empty()) {
      ++lanes;
    } else {
      lane = free_lanes.top();
      free_lanes.pop();
    }
    busy.push({slices[i].end, lane});
    out.push_back(lane);
  }
  return out;
}

std::vector<Stretch> stretches(const std::vector<Slice>& slices, std::int64_t gap) {
  std::vector<Stretch> out;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const Slice& slice = slices[i];
    if (out.empty() || slice.start >= out.back().end + gap) {
      out.push_back({slice.start, slice.end, static_cast<std::int64_t>(i), 1});
    } else {
      out.back().end = std::max(out.back().end, slice.end);
      ++out.back().count;
    }
  }
  return out;
}

std::string microseconds_text(std::int64_t ps) { return ns_text(to_ns(ps)); }

void write_perfetto(std::ostream& out, const Workload& workload,
                    const std::vector<std::string>& labels, const Timeline& timeline,
                    const Topology& topology, const MeasuredRun* measured) {
  std::int64_t drawn =
      timeline.flows.size() > kMaxFlowsDrawn ? 0 : static_cast<std::int64_t>(timeline.flows.size());
  std::string measured_facts;
  if (measured != nullptr)
    measured_facts = fmt::format(", \"measured_by\": {}, \"measured_end_ps\": {}",
                                 in_quotes(measured->backend), measured->timeline.end_ps);
  out << fmt::format(
      "{{\"distributedInfo\": {{\"backend\": \"reshard\", \"rank\": 0, \"world_size\": "
      "{}}},\n\"displayTimeUnit\": \"ns\",\n"
      "\"metadata\": {{\"topology\": {}, \"end_ps\": {}, \"flows\": {}, \"flows_drawn\": "
      "{}{}}},\n\"traceEvents\": [\n",
      topology.devices(), in_quotes(topology.name()), timeline.end_ps, timeline.flows.size(), drawn,
      measured_facts);
  EventWriter events(out);
  Drawing drawing{workload, labels, timeline, topology, events};
  drawing.ranks();
  drawing.flows();
  drawing.links();
  if (measured != nullptr) drawing.measured(measured->timeline);
  out << "\n]}\n";
}

void write_perfetto(std::ostream& out, Study& study, const MeasuredRun* measured) {
  write_perfetto(out, workload_of(study.shared_plan_in_series()), {}, study.flows(),
                 study.topology(), measured);
}

}  // namespace reshard::sim
