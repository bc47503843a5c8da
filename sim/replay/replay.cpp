// SPDX-License-Identifier: BSD-3-Clause
#include "sim/replay/replay.h"

#include <algorithm>
#include <future>
#include <map>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/units.h"
#include "sim/network/engine.h"
#include "sim/replay/deadlock.h"
#include "sim/replay/job_lines.h"
#include "sim/replay/line_plans.h"
#include "sim/replay/operation_bound.h"
#include "sim/study/recorded_run.h"

namespace reshard::sim {
namespace {

class Replay {
 public:
  Replay(const Trace& trace, Studies& studies, const ReplayOptions& options)
      : trace_(trace),
        studies_(studies),
        topology_(*studies.topology()),
        options_(options),
        lines_(trace, studies, progress_) {
    rules_.implicit_launch_order = options.implicit_launch_order || trace.implicit_launch_order;
  }

  // The passes, in order; each needs the results of those before it.
  ReplayReport run() {
    report_.findings = trace_.findings;
    if (!report_.findings.empty()) return std::move(report_);
    check_ranks(trace_, topology_);
    faults_ = faults_of(trace_, topology_);
    lines_.make(options_.move_bytes);
    report_.peak_bytes_max = lines_.peak_bytes_max();
    carry();
    if (std::optional<TraceFinding> hang = order_work()) {
      lines_.require_proofs();
      ReplayReport blocked;
      blocked.findings = {*hang};
      return blocked;
    }
    move_data();
    time();
    lines_.require_proofs();
    if (!report_.findings.empty()) return std::move(report_);
    bound();
    fill_rows();
    std::vector<std::shared_ptr<Study>> studies(lines_.plans().size());
    for (std::size_t op = 0; op < studies.size(); ++op)
      if (lines_.plans()[op]) studies[op] = lines_.different_of(op).study;
    report_.job = job_facts_of(trace_, studies, transports_, report_.timeline, topology_);
    fill_late();
    fill_links();
    label_setups();
    fill_totals();
    return std::move(report_);
  }

 private:
  void progress(std::string_view stage, std::size_t done, std::size_t total) const {
    if (options_.progress)
      options_.progress(stage, static_cast<std::int64_t>(done), static_cast<std::int64_t>(total));
  }

  void move_data() {
    report_.different_requests = std::ssize(lines_.different());
    if (!options_.move_bytes || lines_.different().empty()) return;
    report_.data_budget_bytes = options_.data_budget_bytes / report_.different_requests;
    lines_.move(report_.data_budget_bytes);
    for (const DifferentLine& different : lines_.different()) {
      ++report_.data_checked;
      report_.data_full_size += different.data.full_size ? 1 : 0;
      report_.elements_checked += different.data.elements;
    }
  }

  // Builds the workload and its order. Returns the hang, if there is one.
  std::optional<TraceFinding> order_work() {
    // Copy engines use no communicators.
    std::function<bool(OpId)> by_nccl = [this](OpId op) {
      return transports_[to_index(op)]->kind() != TransportKind::CopyEngine;
    };
    report_.workload = workload_of(trace_, lines_.plans(), by_nccl);
    CommunicatorStudy study(trace_, topology_, rules_, options_.cold, by_nccl, carriers_, faults_);
    if (!options_.communicators) {
      order_ = std::make_unique<const Order>(report_.workload, rules_);
      std::optional<TraceFinding> hang = find_hang(trace_, report_.workload, *order_, topology_);
      if (!hang) report_.default_hang = study.default_hang(report_.workload);
      return hang;
    }
    Workload given = report_.workload;
    std::optional<TraceFinding> hang = study.use(*options_.communicators, report_.workload, order_,
                                                 report_.communicators.emplace_back());
    for (CommunicatorPolicy other : kCommunicatorPolicies)
      if (!hang && other != *options_.communicators)
        report_.communicators.push_back(study.what_if(other, given));
    // Setups have no carrier.
    carriers_.resize(report_.workload.operations.size(), nullptr);
    ideal_.resize(report_.workload.operations.size(), nullptr);
    return hang;
  }

  // Gets each operation's transport, its carrier, and its carrier with links alone.
  void carry() try {
    for (const TraceOperation& operation : trace_.operations) {
      transports_.push_back(studies_.transport(operation.transport));
      carriers_.push_back(transports_.back()->carrier());
      ideal_.push_back(transports_.back()->ideal());
    }
    report_.transport = common_transport();
  } catch (const InputError& refusal) {
    throw refusal.in(trace_.file);
  }

  // The transport of all operations except computes and faults, or "several".
  std::string_view common_transport() const {
    std::string_view common;
    for (std::size_t op = 0; op < transports_.size(); ++op) {
      const TraceBody& body = trace_.operations[op].body;
      if (std::holds_alternative<TraceCompute>(body) || std::holds_alternative<TraceFault>(body))
        continue;
      std::string_view own = reshard::text(transports_[op]->kind());
      if (!common.empty() && common != own) return "several";
      common = own;
    }
    return !common.empty() ? common : reshard::text(studies_.transport()->kind());
  }

  void time() {
    progress("timing", 0, 1);
    try {
      // Carriers with links alone keep no state that the others could share.
      std::future<std::int64_t> ideal_ps;
      if (carriers_ != ideal_)
        ideal_ps = std::async(std::launch::async | std::launch::deferred,
                              [this] { return ideal_time_ps(); });
      RecordedRun run = run_of_trace();
      report_.timeline = std::move(run.timeline);
      if (options_.critical_path) report_.path = path_facts(run.path, topology_);
      if (!report_.communicators.empty())
        CommunicatorStudy::tell(report_.communicators.front(), report_.workload, *order_,
                                report_.timeline);
      report_.ideal_time_ps = ideal_ps.valid() ? ideal_ps.get() : report_.timeline.end_ps;
      if (has_faults(trace_)) run_without_faults();
      look_for_orders();
    } catch (const TransferStopped& stopped) {
      report_.findings.push_back(finding_of(trace_, stopped));
    } catch (const OperationRefused& refusal) {
      throw refusal.in(trace_.place_of(refusal.operation));
    } catch (const InputError& refusal) {
      throw refusal.in(trace_.file);
    }
    report_.time_ps = report_.timeline.end_ps;
    progress("timing", 1, 1);
  }

  // A trace of nothing but a redistribution runs as that does alone, which planning may have
  // recorded.
  RecordedRun run_of_trace() const {
    const Recording what = recording_of(options_);
    if (report_.workload.operations.size() == 1 && lines_.different().size() == 1 &&
        faults_.empty() && !rules_.implicit_launch_order)
      return lines_.different()[0].study->recorded(what);
    return record(report_.workload, topology_, what,
                  {.carriers = {nullptr, carriers_}, .order = order_.get(), .faults = faults_});
  }

  std::int64_t ideal_time_ps() const {
    return sim::run(report_.workload, topology_,
                    {.record_spans = false,
                     .carriers = {nullptr, ideal_},
                     .order = order_.get(),
                     .faults = faults_})
        .end_ps;
  }

  void look_for_orders() {
    if (trace_.operations.size() > ReplayReport::kMaxReordered && !options_.reorder) return;
    report_.reordered =
        reorder(trace_, report_.workload, topology_,
                {.carriers = {nullptr, carriers_}, .order = order_.get(), .faults = faults_},
                report_.timeline, options_.reorder);
  }

  void run_without_faults() {
    Workload workload = without_late_ranks(trace_, report_.workload);
    Timeline without =
        sim::run(workload, topology_, {.carriers = {nullptr, carriers_}, .order = order_.get()});
    report_.fault_cost = cost_of(trace_, report_.timeline, without);
  }

  void bound() {
    OperationBounds bounds(topology_);
    for (std::size_t op = 0; op < report_.workload.operations.size(); ++op) {
      try {
        TransportKind by = op < transports_.size() ? transports_[op]->kind() : TransportKind::Ideal;
        bounds_.push_back(bounds.of(report_.workload.operations[op], switches_of(by)));
      } catch (const InputError& error) {
        throw error.in(trace_.place_of(id_of<OpId>(op)));
      }
    }
    report_.path_bound_ps = longest_path_ps(report_.workload, bounds_);
    report_.cut_bound_ps = summed_cut_bound_ps(report_.workload, topology_);
    report_.bound_ps = std::max(report_.path_bound_ps, report_.cut_bound_ps);
    RESHARD_CHECK(report_.time_ps >= report_.bound_ps,
                  fmt::format("{} takes {}, less than its bound {}", trace_.file,
                              duration_text(report_.time_ps), duration_text(report_.bound_ps)));
  }

  std::string label_of(OpId op) const {
    const TraceLine& line = trace_.line_of(op);
    if (!line.name.empty()) return line.name;
    if (!line.id.empty()) return line.id;
    return fmt::format("{} (line {})", op_text(trace_.operations[op]), line.number);
  }

  ReplayRow row_of(std::size_t op) const {
    const TraceOperation& given = trace_.operations[op];
    const TraceLine& line = trace_.line_of(given);
    const Operation& operation = report_.workload.operations[op];
    ReplayRow row{line.number,
                  std::string(op_text(given)),
                  line.id,
                  line.name,
                  reshard::text(operation),
                  {},
                  {},
                  {},
                  {},
                  0,
                  bounds_[op]->time_ps};
    if (moves_bytes(operation)) row.transport = reshard::text(transports_[op]->kind());
    if (std::holds_alternative<TraceRedistribute>(given.body)) {
      row.text = lines_.different_of(op).text;
      row.planner = lines_.plans()[op]->planner;
      row.tensors = std::ssize(lines_.different_of(op).study->tensors());
    } else if (std::holds_alternative<PointToPoint>(operation.body)) {
      row.op = "message";
    } else if (std::holds_alternative<TraceCall>(given.body)) {
      row.op = "collective";
    }
    return row;
  }

  // Bytes that the ranks of an operation received from other ranks; `collective_bytes` are those of
  // its flows.
  std::int64_t received_by(std::size_t op, std::int64_t collective_bytes) const {
    const TraceBody& given = trace_.operations[op].body;
    if (std::holds_alternative<TraceRedistribute>(given))
      return lines_.different_of(op).bytes_received;
    if (const auto* end = std::get_if<TraceEnd>(&given)) return end->bytes;
    return collective_bytes;
  }

  void fill_rows() {
    struct Times {
      std::optional<std::int64_t> start_ps, end_ps;
      std::int64_t bytes = 0;  // of flows
    };
    IndexVector<OpId, Times> times(trace_.operations.size());
    for (const Span& span : report_.timeline.spans) {
      if (to_index(span.op) >= times.size()) continue;  // a setup, which has no line
      Times& at = times[span.op];
      at.start_ps = std::min(at.start_ps.value_or(span.start_ps), span.start_ps);
      at.end_ps = std::max(at.end_ps.value_or(span.end_ps), span.end_ps);
    }
    for (const FlowSpan& flow : report_.timeline.flows) add_bytes(times[flow.op].bytes, flow.bytes);
    for (std::size_t i = 0; i < times.size(); ++i) {
      auto op = id_of<OpId>(i);
      bool runs = trace_.runs(op) == op,
           redistributes = std::holds_alternative<TraceRedistribute>(trace_.operations[op].body);
      report_.lines.push_back(trace_.line_of(op).number);
      if (options_.details) report_.labels.push_back(label_of(op));
      if (!runs) continue;
      std::int64_t received = received_by(i, times[op].bytes);
      add_bytes(report_.bytes_received_total, received);
      if (!options_.details && !redistributes) continue;
      ReplayRow row = row_of(i);
      row.start_ps = times[op].start_ps;
      row.end_ps = times[op].end_ps;
      row.bytes_received = received;
      if (redistributes) row.stages = stages_of(op);
      (redistributes ? report_.requests : report_.others).push_back(std::move(row));
    }
  }

  std::vector<StageRow> stages_of(OpId op) const {
    const Plan& plan = *lines_.plans()[to_index(op)];
    if (plan.stages.empty()) return {};
    auto [first, last] = std::equal_range(report_.timeline.spans.begin(),
                                          report_.timeline.spans.end(), Span{op, 0, Rank{0}, 0, 0},
                                          [](const Span& a, const Span& b) { return a.op < b.op; });
    return stage_rows(plan, count_bytes(plan).received_per_step, {first, last});
  }

  void label_setups() {
    for (std::size_t op = report_.labels.size(); options_.details && op < bounds_.size(); ++op)
      report_.labels.push_back(reshard::text(report_.workload.operations[op]));
  }

  // Reports the late rank's own call, not the first call of the collective.
  void fill_late() {
    for (LateArrival late : late_arrivals(report_.workload, report_.timeline)) {
      late.op = stated_operation(report_.workload, late.op, late.rank);
      report_.late.push_back(late);
    }
  }

  void fill_links() {
    const Timeline& timeline = report_.timeline;
    report_.links = busiest_links(timeline, topology_, timeline.resources.size());
    report_.classes = use_by_class(timeline, topology_);
  }

  void fill_totals() {
    report_.trace = trace_.file;
    report_.cold = options_.cold;
    report_.searched = options_.reorder;
    report_.topology = topology_.name();
    report_.operations = static_cast<std::int64_t>(trace_.operations.size());
    report_.cache = studies_.cache_statistics();
    Hasher hasher;
    hasher.add(report_.time_ps);
    for (const Span& span : report_.timeline.spans)
      for (std::int64_t value :
           {static_cast<std::int64_t>(to_index(span.op)), std::int64_t{span.step},
            std::int64_t{to_int(span.rank)}, span.start_ps, span.end_ps})
        hasher.add(value);
    for (const DifferentLine& different : lines_.different())
      hasher.add(different.data.digest ? different.data.digest->hex() : "none");
    report_.digest = hasher.digest();
  }

  const Trace& trace_;
  Studies& studies_;
  const Topology& topology_;
  const ReplayOptions& options_;
  const LinePlans::Progress progress_ = [this](std::string_view stage, std::size_t done,
                                               std::size_t total) { progress(stage, done, total); };
  LinePlans lines_;
  OrderRules rules_;
  std::unique_ptr<const Order> order_;  // of the workload
  std::vector<Fault> faults_;
  ReplayReport report_;
  std::vector<std::shared_ptr<const Carriage>> transports_;    // by operation
  std::vector<Carrier*> carriers_, ideal_;                     // by operation
  std::vector<std::shared_ptr<const OperationBound>> bounds_;  // by operation
};

}  // namespace

ReplayReport replay(const Trace& trace, Studies& studies, const ReplayOptions& options) {
  return Replay(trace, studies, options).run();
}

}  // namespace reshard::sim
