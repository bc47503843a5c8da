// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/errors.h"
#include "sim/dispatch/choices.h"
#include "sim/dispatch/dispatched.h"
#include "sim/dispatch/emission.h"
#include "sim/dispatch/random_offsets.h"
#include "sim/dispatch/recorded.h"
#include "sim/dispatch/torch_refusals.h"

namespace reshard::sim {
namespace {

class Dispatching {
 public:
  Dispatching(Trace& trace, const DispatchOptions& options, std::int32_t devices_per_host,
              PricedAs priced_as)
      : trace_(trace),
        options_(options),
        choices_(devices_per_host, options.time_ps),
        cache_(options.cache_size) {
    report_.mode = options.mode;
    report_.devices_per_host = devices_per_host;
    report_.priced_as = priced_as;
  }

  // Number of calls for which PyTorch's choices differ from the expectations; above all calls if
  // one is refused.
  std::size_t unmet() {
    collect_lines();
    try {
      std::vector<Taken> lines = by_torch(cache_);
      return static_cast<std::size_t>(std::count_if(
          lines.begin(), lines.end(),
          [&](const Taken& taken) { return !unmet_expectations(taken.call).empty(); }));
    } catch (const InputError&) {
      return lines_.size() + 1;
    }
  }

  DispatchReport run() {
    collect_lines();
    report_.calls = options_.mode == DispatchMode::Torch ? calls_of(by_torch(cache_)) : by_best();
    for (DispatchedCall& call : report_.calls) finish(call);
    report_.recorded = taken_as_recorded(report_.calls);
    report_.sharing = sharing_of(trace_.file, report_.tensors, report_.calls);
    find_lost_writes();
    count_issued();
    emit(trace_, report_.calls, report_.sharing, options_.prefetch);
    report_.cache = cache_.statistics();
    return std::move(report_);
  }

 private:
  void collect_lines() {
    for (const TraceOperation& operation : trace_.operations) {
      const auto* line = std::get_if<TraceOperator>(&operation.body);
      if (!line) continue;
      const TraceLine& trace_line = trace_.lines[operation.line];
      if ((*line)->kind != OperatorLine::Kind::Tensor) {
        lines_.push_back({trace_line.number, trace_line.id, *line});
        continue;
      }
      report_.tensors.push_back(*line);
      place(declared_, (*line)->out[0], Held{(*line)->spec});
    }
    find_stale();
  }

  // Finds the values about which less is known after a write.
  void find_stale() {
    std::vector<std::shared_ptr<const OperatorLine>> op_lines;
    for (const DispatchLine& line : lines_) op_lines.push_back(line.op_line);
    std::vector<std::vector<ValueId>> stale = stale_after(report_.tensors, op_lines);
    for (std::size_t i = 0; i < lines_.size(); ++i) lines_[i].stale = std::move(stale[i]);
  }

  static void place(std::vector<std::optional<Held>>& held, ValueId value, Held what) {
    if (to_index(value) >= held.size()) held.resize(to_index(value) + 1);
    held[to_index(value)] = std::move(what);
  }

  // Processes every line in turn with the decision that `decide` makes. With `refusals`, lines that
  // PyTorch refuses are refused too.
  template <class Decide>
  std::vector<Taken> in_turn(Decide decide, bool shares, TorchRefusals* refusals = nullptr) {
    std::vector<std::optional<Held>> values = declared_;
    HeldOf held = [&](ValueId value) -> const Held& { return *values[to_index(value)]; };
    std::vector<Taken> out;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      try {
        if (refusals) refusals->check_meshes(*lines_[i].op_line);
        out.push_back(choices_.take(lines_[i], held, decide(i, held), shares));
        if (refusals) refusals->follow(out.back().call);
      } catch (const InputError& error) {
        throw error.in(fmt::format("{}:{}", trace_.file, lines_[i].number));
      }
      for (const auto& [value, now] : out.back().held) place(values, value, now);
    }
    return out;
  }

  std::vector<Taken> by_torch(DecisionCache& cache) {
    std::vector<bool> hits;
    TorchRefusals refusals(report_.tensors);
    std::vector<Taken> out = in_turn(
        [&](std::size_t i, const HeldOf& held) {
          const OperatorLine& op_line = *lines_[i].op_line;
          hits.push_back(false);
          return decision_of(op_line, held, [&](const OpCall& call) {
            Decision decision = cache.of(call, choices_.number_of(op_line.mesh),
                                         [&] { return choices_.by_torch(call, op_line.mesh); });
            hits.back() = cache.hit();
            return decision;
          });
        },
        false, &refusals);
    for (std::size_t i = 0; i < out.size(); ++i) out[i].call.hit = hits[i];
    return out;
  }

  // Fills in cache hits of decisions made elsewhere, as if they were made in turn.
  void count_hits(std::vector<DispatchedCall>& calls) {
    for (DispatchedCall& call : calls) {
      if (!call.op || !call.recorded.empty()) continue;
      HeldOf held = [&](ValueId value) -> const Held& { return *values_[to_index(value)]; };
      OpCall asked = Choices::call_of(*call.op_line, held);
      cache_.of(asked, choices_.number_of(call.op_line->mesh), [&] { return call.decision; });
      call.hit = cache_.hit();
    }
  }

  std::vector<DispatchedCall> calls_of(const std::vector<Taken>& lines) {
    values_ = declared_;
    std::vector<DispatchedCall> out;
    for (const Taken& taken : lines) {
      out.push_back(taken.call);
      for (const auto& [value, held] : taken.held) place(values_, value, held);
    }
    for (const std::optional<Held>& value : values_)
      report_.values.push_back(value ? value->spec : TensorSpec{});
    return out;
  }

  // The choices over the whole trace if they are no worse than PyTorch's, with or without reused
  // copies, in time and in bytes moved implicitly.
  std::vector<DispatchedCall> by_best() {
    std::optional<std::vector<Taken>> torch;
    try {
      DecisionCache own;
      torch = by_torch(own);
    } catch (const InputError&) {  // what it refuses may have another solution
    }
    std::vector<Taken> best;
    try {
      best = look_ahead(lines_, declared_, trace_.file, choices_);
    } catch (const InputError&) {
      if (!torch) throw;
    }
    if (torch) {
      std::vector<Taken> sharing =
          in_turn([&](std::size_t i, const HeldOf&) { return (*torch)[i].call.decision; }, true);
      figure(*torch);
      figure(sharing);
      figure(best);
      if (best.empty() || is_worse(best, sharing)) best = sharing;
      if (is_worse(best, *torch)) best = *torch;
      if (options_.trace_ps) best = fastest({&best, &sharing, &*torch});
    }
    std::vector<DispatchedCall> calls = calls_of(best);
    count_hits(calls);
    // What PyTorch gets wrong, it gets wrong when calls are decided its way.
    for (std::size_t i = 0; torch && i < calls.size(); ++i)
      calls[i].decision.corrected = (*torch)[i].call.decision.corrected;
    if (torch) report_.regret = regret_of(only_calls(*torch), calls);
    return calls;
  }

  static std::vector<DispatchedCall> only_calls(const std::vector<Taken>& lines) {
    std::vector<DispatchedCall> out;
    for (const Taken& taken : lines) out.push_back(taken.call);
    return out;
  }

  static bool is_worse(const std::vector<Taken>& best, const std::vector<Taken>& other) {
    Moved all, implicit, other_all, other_implicit;
    for (std::size_t i = 0; i < best.size(); ++i) {
      Moved one = moved_by(best[i].call), two = moved_by(other[i].call);
      all += one;
      other_all += two;
      if (!best[i].call.op) continue;
      implicit += one;
      other_implicit += two;
    }
    return all.time_ps > other_all.time_ps || implicit.bytes > other_implicit.bytes;
  }

  // Moves that do not simply follow one another can take longer than their sum. Returns the first
  // of the alternatives that take least as a whole.
  std::vector<Taken> fastest(const std::vector<const std::vector<Taken>*>& choices) const {
    const std::vector<Taken>* out = choices.front();
    std::int64_t least_ps = std::numeric_limits<std::int64_t>::max();
    for (const std::vector<Taken>* choice : choices) {
      std::vector<DispatchedCall> calls = only_calls(*choice);
      for (DispatchedCall& call : calls) set_duration(call);
      Trace trace = trace_;
      emit(trace, calls, sharing_of(trace_.file, report_.tensors, calls), options_.prefetch);
      std::int64_t time_ps = options_.trace_ps(trace);
      if (time_ps < least_ps) out = choice;
      least_ps = std::min(least_ps, time_ps);
    }
    return *out;
  }

  void figure(std::vector<Taken>& lines) const {
    for (Taken& taken : lines) figure(taken.call);
  }

  void figure(DispatchedCall& call) const {
    for (DispatchedMove& move : call.moves) {
      if (!call.sized || move.again || move.figures || !options_.figures) continue;
      const TensorSpec& spec = *call.in[to_index(move.input)];
      std::optional<Request> request =
          request_of({spec.meta, move.from, spec.of_view}, move.to, call.op_line->mesh);
      if (request) move.figures = options_.figures(*request);
    }
  }

  // ---- what is reported about a decided call

  void finish(DispatchedCall& call) {
    figure(call);
    set_duration(call);
    count(call);
    if (!call.op) return;
    set_random(call);
    if (options_.explicit_only)
      for (const DispatchedMove& move : call.moves)
        if (!move.again)
          find(call.line, fmt::format("{} redistributes its input {} implicitly from {} to {}",
                                      call.op->name, move.input, text(move.from), text(move.to)));
    if (options_.mode == DispatchMode::Torch && call.recorded.empty())
      for (const std::string& unmet : unmet_expectations(call)) find(call.line, unmet);
  }

  void set_duration(DispatchedCall& call) const {
    if (call.op_line->duration_ps) {
      call.duration_of = DurationOf::Line;
      call.duration_ps = *call.op_line->duration_ps;
    } else if (call.op && options_.gpu && call.sized) {
      call.duration_of = DurationOf::Estimate;
      DType dtype = call.in.empty() || !call.in[0] ? DType::F32 : call.in[0]->meta.dtype;
      call.duration_ps = estimated_ps(work_of(call), dtype, *options_.gpu);
    }
  }

  void set_random(DispatchedCall& call) {
    if (!call.sized || !is_random(call.op->name) || call.in.empty() || !call.in[0]) return;
    TensorSpec first{call.in[0]->meta, *call.decision.wanted[0]};
    RandomOffsets offsets = random_offsets(first, *call.op_line->mesh);
    for (std::int64_t start : offsets.starts) call.random_starts.push_back(random_offset_ + start);
    random_offset_ += offsets.after;
  }

  void count(const DispatchedCall& call) {
    CollectiveCounts& counts = report_.collectives[pass_key(call.pass)];
    for (const DispatchedMove& move : call.moves)
      for (const OpStep& step : move.steps)
        if (const char* kind = collective_of(step, call.op_line->mesh->shape());
            kind && !move.again)
          ++counts[kind];
    for (const OpCollective& collective : call.decision.collectives) ++counts[collective.kind];
    if (counts.empty()) report_.collectives.erase(pass_key(call.pass));
  }

  // Every rank issues those that it takes part in; if several groups have one line each, a rank
  // issues one of them.
  void count_issued() {
    std::map<Rank, std::map<std::string_view, CollectiveCounts>> by_rank;
    std::map<Rank, std::int64_t> totals;
    for (const TraceOperation& operation : trace_.operations) {
      const auto* collective = std::get_if<TraceCollective>(&operation.body);
      if (!collective || !collective->place) continue;
      for (Rank rank : collective->ranks) {
        ++by_rank[rank][pass_key(collective->place->pass)][text(collective->kind)];
        ++totals[rank];
      }
    }
    auto most = std::max_element(totals.begin(), totals.end(),
                                 [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != totals.end()) report_.issued = std::move(by_rank[most->first]);
  }

  void find(std::int64_t line, const std::string& what) {
    report_.findings.push_back({{line}, fmt::format("{}:{}: {}", trace_.file, line, what)});
  }

  // A write that nothing reads may be meant for the copy alone.
  void find_lost_writes() {
    for (const LostWrite& lost : report_.sharing.lost) {
      if (!lost.read_line && !lost.stays) continue;
      find(lost.line, text(lost));
      std::vector<std::int64_t>& lines = report_.findings.back().lines;
      lines.push_back(lost.copied_line);
      if (lost.read_line) lines.push_back(*lost.read_line);
      std::sort(lines.begin(), lines.end());
      lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    }
  }

  // The expectations that a call does not meet.
  static std::vector<std::string> unmet_expectations(const DispatchedCall& call) {
    std::vector<std::string> out;
    if (!call.op) return out;
    auto compare = [&](const std::optional<std::vector<std::string>>& expected,
                       const std::vector<std::string>& found, std::string_view what) {
      if (expected && *expected != found)
        out.push_back(fmt::format("expect: {} of {} are [{}], not [{}]", what, call.op->name,
                                  fmt::join(found, ", "), fmt::join(*expected, ", ")));
    };
    std::vector<std::string> in, made;
    for (const auto& wanted : call.decision.wanted) in.push_back(wanted ? text(*wanted) : "");
    for (const auto& output : call.decision.outputs)
      made.push_back(output ? text(output->placements) : "");
    // An operator that only writes to its inputs returns them.
    bool returns_input = made.empty();
    for (std::size_t i = 0; returns_input && i < call.op_line->out.size() && i < call.in.size();
         ++i)
      made.push_back(call.in[i] ? text(call.in[i]->placements) : "");
    compare(call.op_line->expect_in, in, "inputs");
    compare(call.op_line->expect_out, made, "outputs");
    return out;
  }

  Trace& trace_;
  const DispatchOptions& options_;
  Choices choices_;
  DecisionCache cache_;
  DispatchReport report_;
  std::vector<DispatchLine> lines_;
  std::int64_t random_offset_ = 0;  // of the generator that all ranks seed equally
  std::vector<std::optional<Held>> declared_, values_;  // by value
};

}  // namespace

std::string_view text(DurationOf from) {
  return from == DurationOf::None ? "none" : from == DurationOf::Line ? "given" : "estimated";
}

std::string_view text(PricedAs as) {
  return as == PricedAs::Topology ? "topology" : as == PricedAs::Recorded ? "recorded" : "fitted";
}

std::string_view pass_key(const std::string& pass) {
  return pass == "backward" ? "backward" : pass == "optimizer" ? "optimizer" : "forward";
}

namespace {

bool has_expectations(const Trace& trace) {
  return std::any_of(
      trace.operations.begin(), trace.operations.end(), [](const TraceOperation& operation) {
        const auto* line = std::get_if<TraceOperator>(&operation.body);
        return line && ((*line)->expect_in.has_value() || (*line)->expect_out.has_value());
      });
}

// Recorders older than the field `recorded` stated nothing: most ran on a CPU.
PricedAs fitting(Trace& trace, const DispatchOptions& options) {
  auto unmet = [&](std::int32_t devices_per_host) {
    return Dispatching(trace, options, devices_per_host, PricedAs::Topology).unmet();
  };
  std::size_t by_topology = unmet(options.devices_per_host);
  return by_topology > 0 && unmet(1) < by_topology ? PricedAs::Fitted : PricedAs::Topology;
}

}  // namespace

DispatchReport dispatch(Trace& trace, const DispatchOptions& options) {
  PricedAs as = PricedAs::Topology;
  if (has_expectations(trace)) as = trace.recorded ? PricedAs::Recorded : fitting(trace, options);
  std::int32_t devices_per_host = as == PricedAs::Topology   ? options.devices_per_host
                                  : as == PricedAs::Recorded ? trace.recorded->devices_per_host
                                                             : 1;
  return Dispatching(trace, options, devices_per_host, as).run();
}

}  // namespace reshard::sim
