// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>

#include "core/base/errors.h"
#include "sim/dispatch/moves.h"

namespace reshard::sim {
namespace {

// What a name stands for while the trace is gone through.
struct Held {
  TensorSpec spec;
  std::vector<OpId> makers;  // operations that it comes from
  // Best: how it was already brought to lie, and by which.
  std::vector<std::pair<OpPlacements, std::vector<OpId>>> brought;
};

void merge(std::vector<OpId>& into, const std::vector<OpId>& more) {
  into.insert(into.end(), more.begin(), more.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

class Dispatching {
 public:
  Dispatching(Trace& trace, const DispatchOptions& options)
      : trace_(trace), options_(options), cache_(options.cache_size) {
    report_.mode = options.mode;
  }

  DispatchReport run() {
    IndexVector<OpId, TraceOperation> before = std::move(trace_.operations);
    trace_.operations = {};
    stands_for_.resize(before.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      auto op = id_of<OpId>(i);
      if (const auto* line = std::get_if<TraceOperator>(&before[op].body)) {
        expand(before[op], *line, stands_for_[op]);
      } else {
        TraceOperation same = before[op];
        same.after = now(same.after);
        stands_for_[op] = {add(std::move(same))};
      }
    }
    relink();
    join_own_communicators(trace_);
    report_.cache = cache_.statistics();
    return std::move(report_);
  }

 private:
  OpId add(TraceOperation operation) {
    if (trace_.operations.size() == kMaxTraceOperations)
      throw InputError(fmt::format("{}: expected at most {} operations, found more", trace_.file,
                                   kMaxTraceOperations));
    trace_.operations.push_back(std::move(operation));
    return id_of<OpId>(trace_.operations.size() - 1);
  }

  std::vector<OpId> now(const std::vector<OpId>& before) const {
    std::vector<OpId> out;
    for (OpId op : before) merge(out, stands_for_[op]);
    return out;
  }

  // Ends of messages and calls of collectives name each other.
  void relink() {
    auto moved = [&](std::int32_t& op) {
      if (op >= 0) op = static_cast<std::int32_t>(to_index(stands_for_[op].front()));
    };
    for (TraceOperation& operation : trace_.operations) {
      if (auto* end = std::get_if<TraceEnd>(&operation.body)) moved(end->other);
      if (auto* call = std::get_if<TraceCall>(&operation.body)) moved(call->first);
    }
  }

  void expand(const TraceOperation& given, const TraceOperator& line, std::vector<OpId>& stands) {
    std::string place = fmt::format("{}:{}", trace_.file, trace_.lines[given.line].number);
    std::vector<OpId> after = now(given.after);
    try {
      if (line->kind == OperatorLine::Kind::Tensor) {
        report_.tensors.push_back(line);
        hold(*line, 0, {line->spec, after, {}});
        stands = after;
      } else if (line->kind == OperatorLine::Kind::Call) {
        stands = expand_call(given, line, after);
      } else {
        stands = expand_redistribute(given, line, after);
      }
    } catch (const InputError& error) {
      throw error.in(place);
    }
  }

  void hold(const OperatorLine& line, std::size_t output, Held held) {
    ValueId value = line.out[output];
    if (value == kNoValue) return;
    if (to_index(value) >= held_.size()) {
      held_.resize(to_index(value) + 1);
      report_.values.resize(to_index(value) + 1);
    }
    report_.values[to_index(value)] = held.spec;
    held_[to_index(value)] = std::move(held);
  }

  const TorchMoves& moves_on(const MeshRef& mesh) {
    for (const TorchMoves& known : meshes_)
      if (known.mesh() == *mesh) return known;
    return meshes_.emplace_back(mesh, options_.devices_per_host);
  }
  std::uint64_t number_of(const TorchMoves& moves) const {
    std::uint64_t number = 0;
    while (&meshes_[number] != &moves) ++number;
    return number;
  }

  MoveCost cost_on(const TorchMoves& moves) {
    if (options_.mode == DispatchMode::Torch)
      return [&moves](const TensorSpec& from, const OpPlacements& to) {
        return moves.cost_us(from, to);
      };
    return [this, &moves](const TensorSpec& from, const OpPlacements& to) {
      try {
        std::optional<Request> request = request_of(from, to, moves.mesh_ref());
        return request ? static_cast<double>(options_.time_ps(*request)) * 1e-6 : 0.0;
      } catch (const InputError&) {  // no request leads there
        return std::numeric_limits<double>::infinity();
      }
    };
  }

  // ---- a call

  OpCall call_of(const OperatorLine& line) const {
    OpCall out{&find_operator(line.call), {}, line.attributes, line.loss_parallel};
    for (const OperatorLine::Argument& argument : line.in) {
      OpArgument& tensors = out.arguments.emplace_back();
      tensors.is_list = argument.is_list;
      for (ValueId value : argument.values)
        tensors.tensors.push_back(value == kNoValue ? nullptr : &held_[to_index(value)].spec);
    }
    return out;
  }

  std::vector<OpId> expand_call(const TraceOperation& given, const TraceOperator& line,
                                const std::vector<OpId>& after) {
    const TorchMoves& moves = moves_on(line->mesh);
    OpCall call = call_of(*line);
    DispatchedCall out = described(given, line);
    out.op = call.op;
    Ties ties = options_.mode == DispatchMode::Torch ? Ties::Torch : Ties::Fewest;
    out.decision = cache_.of(call, number_of(moves), [&] {
      return decide(call, line->mesh->shape(), cost_on(moves), {ties});
    });
    out.hit = cache_.hit();
    std::vector<OpId> waits = bring_inputs(given, *line, moves, after, out);
    if (options_.mode == DispatchMode::Torch) check_expected(*line, out);
    std::vector<OpId> done = handle(given, *line, out, waits);
    if (line->duration_ps.value_or(0) > 0) {
      TraceCompute compute{line->mesh->ranks(), *line->duration_ps};
      done = {add({given.line, given.stream, std::move(compute), done, {}, {}})};
    }
    give_outputs(*line, out, done);
    report_.calls.push_back(std::move(out));
    return done;
  }

  // Collectives that the operator does itself, one after the other, in every group of their axis.
  std::vector<OpId> handle(const TraceOperation& given, const OperatorLine& line,
                           const DispatchedCall& call, std::vector<OpId> waits) {
    const Mesh& mesh = *line.mesh;
    for (const OpCollective& collective : call.decision.collectives) {
      ++report_.collectives[pass_of(call.pass)][collective.kind];
      bool gathers = collective.kind == "all_gather";
      std::int64_t bytes = element_count(collective.shape) * size_bytes(collective.dtype);
      std::vector<OpId> done;
      for (std::int32_t first = 0; first < mesh.size(); ++first) {
        MeshCoordinate at = mesh.coordinate(first);
        if (at[to_index(collective.axis)] != 0) continue;
        TraceCollective body{gathers ? CollectiveKind::AllGather : CollectiveKind::AllReduce,
                             Algorithm::Ring,
                             {},
                             bytes};
        for (; at[to_index(collective.axis)] < mesh.axis_size(collective.axis);
             ++at[to_index(collective.axis)])
          body.ranks.push_back(mesh.rank_at(mesh.position_at(at)));
        done.push_back(add({given.line, given.stream, std::move(body), waits, {}, {}}));
      }
      waits = std::move(done);
    }
    return waits;
  }

  DispatchedCall described(const TraceOperation& given, const TraceOperator& line) const {
    const TraceLine& said = trace_.lines[given.line];
    return {said.number, said.id, line->module, line->pass, line, nullptr, {}, {}, false, {}};
  }

  // Operations after which the call can begin.
  std::vector<OpId> bring_inputs(const TraceOperation& given, const OperatorLine& line,
                                 const TorchMoves& moves, const std::vector<OpId>& after,
                                 DispatchedCall& out) {
    std::vector<OpId> waits = after;
    std::int32_t input = 0;
    for (const OperatorLine::Argument& argument : line.in)
      for (ValueId value : argument.values) {
        if (to_index(input) >= out.decision.wanted.size()) return waits;
        if (value == kNoValue) {
          out.in.emplace_back(std::nullopt);
        } else {
          out.in.emplace_back(held_[to_index(value)].spec);
          merge(waits, brought(given, input, value, moves, after, out));
        }
        ++input;
      }
    return waits;
  }

  std::vector<OpId> brought(const TraceOperation& given, std::int32_t input, ValueId value,
                            const TorchMoves& moves, const std::vector<OpId>& after,
                            DispatchedCall& out) {
    Held& held = held_[to_index(value)];
    const OpPlacements& to = *out.decision.wanted[to_index(input)];
    if (to == held.spec.placements) return held.makers;
    DispatchedMove move{input,
                        value,
                        held.spec.placements,
                        to,
                        moves.steps(held.spec, to),
                        moves.cost_us(held.spec, to)};
    for (const auto& [known, by] : held.brought)
      if (known == to) {
        move.again = true;
        out.moves.push_back(std::move(move));
        return by;
      }
    std::vector<OpId> waits = after;
    merge(waits, held.makers);
    std::string name = fmt::format("{}.in{}", out.said->call, input);
    std::vector<OpId> done = moved(given, held.spec, to, moves, name, waits);
    if (options_.mode == DispatchMode::Best) held.brought.emplace_back(to, done);
    count(move, moves, out.pass);
    if (options_.explicit_only)
      find(out.line, fmt::format("{} redistributes its input {} implicitly from {} to {}",
                                 out.op->name, input, text(move.from), text(move.to)));
    out.moves.push_back(std::move(move));
    return done;
  }

  // A redistribution as an operation of its own; what it waits for where nothing moves.
  std::vector<OpId> moved(const TraceOperation& given, const TensorSpec& from,
                          const OpPlacements& to, const TorchMoves& moves, const std::string& name,
                          const std::vector<OpId>& waits) {
    std::optional<Request> request = request_of(from, to, moves.mesh_ref());
    if (!request) return waits;
    std::shared_ptr<const Request>& known = requests_[request->fingerprint()];
    if (!known) known = std::make_shared<const Request>(*std::move(request));
    trace_.lines.push_back({trace_.lines[given.line].number, "", name});
    auto line = static_cast<std::int32_t>(trace_.lines.size()) - 1;
    return {add({line, given.stream, TraceRedistribute{known}, waits, {}, given.transport})};
  }

  static std::string_view pass_of(const std::string& pass) {
    return pass == "backward" ? "backward" : pass == "optimizer" ? "optimizer" : "forward";
  }

  void count(const DispatchedMove& move, const TorchMoves& moves, const std::string& pass) {
    std::string_view key = pass_of(pass);
    for (const OpStep& step : move.steps)
      if (const char* kind = collective_of(step, moves.sizes())) ++report_.collectives[key][kind];
  }

  void find(std::int64_t line, const std::string& what) {
    report_.findings.push_back({{line}, fmt::format("{}:{}: {}", trace_.file, line, what)});
  }

  void check_expected(const OperatorLine& line, const DispatchedCall& call) {
    auto compare = [&](const std::vector<std::string>& expected,
                       const std::vector<std::string>& found, std::string_view what) {
      if (expected != found)
        find(call.line, fmt::format("expect: {} of {} are [{}], not [{}]", what, call.op->name,
                                    fmt::join(found, ", "), fmt::join(expected, ", ")));
    };
    std::vector<std::string> in, out;
    for (const auto& wanted : call.decision.wanted) in.push_back(wanted ? text(*wanted) : "");
    for (const auto& output : call.decision.outputs)
      out.push_back(output ? text(output->placements) : "");
    if (line.expect_in) compare(*line.expect_in, in, "inputs");
    if (line.expect_out) compare(*line.expect_out, out, "outputs");
  }

  void give_outputs(const OperatorLine& line, const DispatchedCall& call,
                    const std::vector<OpId>& done) {
    const std::vector<std::optional<TensorSpec>>& outputs = call.decision.outputs;
    for (std::size_t i = 0; i < line.out.size(); ++i) {
      if (line.out[i] == kNoValue) continue;
      std::optional<TensorSpec> spec = i < outputs.size() ? outputs[i] : std::nullopt;
      // What only writes to its inputs gives them back.
      if (!spec && outputs.empty() && i < call.in.size()) spec = call.in[i];
      if (!spec)
        throw InputError(fmt::format("out: {} makes {} tensors, found a name for one more",
                                     call.op->name, outputs.size()));
      hold(line, i, {*spec, done, {}});
    }
  }

  // ---- an explicit redistribution

  std::vector<OpId> expand_redistribute(const TraceOperation& given, const TraceOperator& line,
                                        const std::vector<OpId>& after) {
    const TorchMoves& moves = moves_on(line->mesh);
    ValueId value = line->in[0].values[0];
    const Held from = held_[to_index(value)];
    for (const OpPlacement& placement : line->to)
      if (placement.is_shard_like() && placement.dim >= from.spec.meta.shape.size())
        throw InputError(
            fmt::format("to: {} cuts a dim that {} has not", text(line->to), text(from.spec)));
    DispatchedCall out = described(given, line);
    out.in = {from.spec};
    DispatchedMove move{0,
                        value,
                        from.spec.placements,
                        line->to,
                        moves.steps(from.spec, line->to),
                        moves.cost_us(from.spec, line->to)};
    std::vector<OpId> waits = after;
    merge(waits, from.makers);
    std::vector<OpId> done = waits;
    if (move.from != move.to)
      done = moved(given, from.spec, line->to, moves, trace_.lines[given.line].name, waits);
    count(move, moves, out.pass);
    TensorSpec to{from.spec.meta, line->to};
    out.decision.wanted = {line->to};
    out.decision.outputs = {to};
    out.decision.cost_us = move.cost_us;
    out.moves.push_back(std::move(move));
    report_.calls.push_back(std::move(out));
    hold(*line, 0, {to, done, {}});
    return done;
  }

  Trace& trace_;
  const DispatchOptions& options_;
  DecisionCache cache_;
  DispatchReport report_;
  IndexVector<OpId, std::vector<OpId>> stands_for_;  // by operation before
  std::vector<Held> held_;                           // by value
  std::deque<TorchMoves> meshes_;                    // references stay
  std::map<Digest, std::shared_ptr<const Request>> requests_;
};

}  // namespace

std::string_view text(DispatchMode mode) { return mode == DispatchMode::Torch ? "torch" : "best"; }

DispatchReport dispatch(Trace& trace, const DispatchOptions& options) {
  return Dispatching(trace, options).run();
}

}  // namespace reshard::sim
