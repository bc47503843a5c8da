// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/emission.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/errors.h"
#include "sim/dispatch/dispatched.h"
#include "sim/dispatch/work.h"

namespace reshard::sim {
namespace {

using Ops = std::vector<OpId>;

void merge(Ops& into, const Ops& more) {
  into.insert(into.end(), more.begin(), more.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

// Operations that produce a value, and its copies, by their placements.
struct Made {
  bool by_call = false;  // false if declared, or a view of such a value
  std::vector<std::pair<OpPlacements, Ops>> lies;

  // A copy for which nothing was moved exists when the value does.
  const Ops& at(const OpPlacements& placements) const {
    for (const auto& [known, ops] : lies)
      if (known == placements) return ops;
    return lies.front().second;
  }
};

class Emission {
 public:
  Emission(Trace& trace, std::vector<DispatchedCall>& calls, const Sharing& sharing,
           std::int64_t prefetch)
      : trace_(trace), calls_(calls), sharing_(sharing), prefetch_(prefetch) {}

  void run() {
    IndexVector<OpId, TraceOperation> before = std::move(trace_.operations);
    trace_.operations = {};
    replacements_.resize(before.size());
    for (const TraceOperation& operation : before)
      own_stream_ = std::max(own_stream_, operation.stream + 1);
    for (std::size_t i = 0; i < before.size(); ++i) {
      auto op = id_of<OpId>(i);
      if (const auto* line = std::get_if<TraceOperator>(&before[op].body)) {
        expand(before[op], **line, replacements_[op]);
      } else {
        TraceOperation same = before[op];
        same.after = now(same.after);
        replacements_[op] = {add(std::move(same))};
      }
    }
    relink();
    join_own_communicators(trace_);
  }

 private:
  OpId add(TraceOperation operation) {
    if (trace_.operations.size() == kMaxTraceOperations)
      throw InputError(fmt::format("{}: expected at most {} operations, found more", trace_.file,
                                   kMaxTraceOperations));
    trace_.operations.push_back(std::move(operation));
    return id_of<OpId>(trace_.operations.size() - 1);
  }

  Ops now(const Ops& before) const {
    Ops out;
    for (OpId op : before) merge(out, replacements_[op]);
    return out;
  }

  // Ends of messages and calls of collectives name each other.
  void relink() {
    auto moved = [&](std::int32_t& op) {
      if (op >= 0) op = static_cast<std::int32_t>(to_index(replacements_[op].front()));
    };
    for (TraceOperation& operation : trace_.operations) {
      if (auto* end = std::get_if<TraceEnd>(&operation.body)) moved(end->other);
      if (auto* call = std::get_if<TraceCall>(&operation.body)) moved(call->first);
    }
  }

  void expand(const TraceOperation& given, const OperatorLine& line, Ops& replacement) {
    Ops after = now(given.after);
    if (line.kind == OperatorLine::Kind::Tensor) {
      made(line.out[0]) = {false, {{line.spec.placements, after}}};
      remember(line.out[0]);
      replacement = after;
    } else {
      replacement = expand_call(given, calls_[next_++], after);
    }
  }

  Made& made(ValueId value) {
    if (to_index(value) >= made_.size()) made_.resize(to_index(value) + 1);
    return made_[to_index(value)];
  }

  Ops expand_call(const TraceOperation& given, DispatchedCall& call, const Ops& after) {
    Ops waits = bring_inputs(given, call, after);
    // An explicit redistribution is all that its line does.
    if (!call.op && call.moves.front().operation) waits = {*call.moves.front().operation};
    begins_.push_back(waits);
    Ops done = handle(given, call, waits);
    if (call.duration_ps > 0) {
      TraceCompute compute{call.op_line->mesh->ranks(), call.duration_ps};
      done = {add({given.line, given.stream, std::move(compute), done, {}, {}})};
    }
    for (std::size_t i = 0; i < call.op_line->out.size(); ++i)
      if (ValueId value = call.op_line->out[i]; value != kNoValue) {
        made(value) = {is_made(call), {{placements_of(call, i), done}}};
        remember(value);
      }
    if (call.op)
      for (std::size_t input : written_inputs(*call.op, *call.op_line)) write(call, input, done);
    return done;
  }

  // ---- which values share memory

  std::vector<ValueId>* sharers(ValueId value) {
    if (to_index(value) >= sharing_.places.size() || !sharing_.places[to_index(value)])
      return nullptr;
    return &sharers_[sharing_.places[to_index(value)]->whole];
  }
  void remember(ValueId value) {
    if (std::vector<ValueId>* all = sharers(value)) all->push_back(value);
  }
  // Values that share the memory are ready when it is written; copies hold what was there before.
  void write(const DispatchedCall& call, std::size_t input, const Ops& done) {
    ValueId written = call.op_line->flat_in()[input];
    std::vector<ValueId>* all = written == kNoValue ? nullptr : sharers(written);
    if (!all) return;
    for (ValueId value : *all) {
      Made& of = made(value);
      of.lies.resize(1);
      merge(of.lies.front().second, done);
    }
  }

  // If the call only writes, its outputs are its inputs.
  static OpPlacements placements_of(const DispatchedCall& call, std::size_t output) {
    const auto& outputs = call.decision.outputs;
    return output < outputs.size() && outputs[output] ? outputs[output]->placements
                                                      : call.in[output]->placements;
  }

  // A view of a value that no call made is not made by a call either.
  bool is_made(const DispatchedCall& call) {
    return !call.op || !is_free_of_work(*call.op) || !call.moves.empty() ||
           made(call.op_line->in[0].values[0]).by_call;
  }

  Ops bring_inputs(const TraceOperation& given, DispatchedCall& call, const Ops& after) {
    Ops waits = after;
    auto move = call.moves.begin();
    std::vector<ValueId> inputs = call.op_line->flat_in();
    for (std::size_t i = 0; i < call.in.size(); ++i) {
      if (move != call.moves.end() && to_index(move->input) == i) {
        merge(waits, brought(given, call, *move++, after));
      } else if (call.in[i]) {
        merge(waits, made(inputs[i]).at(call.in[i]->placements));
      }
    }
    return waits;
  }

  Ops brought(const TraceOperation& given, const DispatchedCall& call, DispatchedMove& move,
              const Ops& after) {
    Made& source = made(move.value);
    if (move.again) return source.at(move.to);
    Ops waits = after;
    merge(waits, source.at(move.from));
    if (!call.sized) return waits;
    const TensorSpec& spec = *call.in[to_index(move.input)];
    std::optional<Request> request =
        request_of({spec.meta, move.from, spec.of_view}, move.to, call.op_line->mesh);
    if (!request) return waits;
    bool early = prefetch_ > 0 && call.op && !source.by_call;
    if (early) waits = begin_of_earlier(waits);
    std::string name = call.op ? fmt::format("{}.in{}", call.op_line->call, move.input)
                               : trace_.lines[given.line].name;
    OpId op = redistribute(given, *std::move(request), std::move(name), std::move(waits));
    if (early) trace_.operations[op].stream = own_stream_;
    move.operation = op;
    if (move.to != spec.placements) source.lies.emplace_back(move.to, Ops{op});
    return {op};
  }

  // Starts with the call `prefetch_` calls earlier.
  Ops begin_of_earlier(Ops waits) const {
    auto early = to_index(prefetch_);
    if (begins_.size() >= early) merge(waits, begins_[begins_.size() - early]);
    return waits;
  }

  OpId redistribute(const TraceOperation& given, Request request, std::string name, Ops waits) {
    std::shared_ptr<const std::vector<Request>>& known = requests_[request.fingerprint()];
    if (!known)
      known = std::make_shared<const std::vector<Request>>(std::vector{std::move(request)});
    trace_.lines.push_back({trace_.lines[given.line].number, "", std::move(name)});
    auto line = static_cast<std::int32_t>(trace_.lines.size()) - 1;
    return add(
        {line, given.stream, TraceRedistribute{known}, std::move(waits), {}, given.transport});
  }

  // Collectives that the operator issues itself, one after another, in every group of their axis.
  Ops handle(const TraceOperation& given, const DispatchedCall& call, Ops waits) {
    const Mesh& mesh = *call.op_line->mesh;
    for (const OpCollective& collective : call.decision.collectives) {
      bool gathers = collective.kind == "all_gather";
      std::int64_t bytes = element_count(collective.shape) * size_bytes(collective.dtype);
      Ops done;
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

  Trace& trace_;
  std::vector<DispatchedCall>& calls_;
  const Sharing& sharing_;
  std::int64_t prefetch_;
  std::map<MemoryId, std::vector<ValueId>> sharers_;  // by their memory as whole tensors
  std::size_t next_ = 0;
  std::int32_t own_stream_ = 0;
  IndexVector<OpId, Ops> replacements_;  // by original operation
  std::vector<Made> made_;               // by value
  std::vector<Ops> begins_;              // by call: what it waits for
  std::map<Digest, std::shared_ptr<const std::vector<Request>>> requests_;
};

}  // namespace

void emit(Trace& trace, std::vector<DispatchedCall>& calls, const Sharing& sharing,
          std::int64_t prefetch) {
  Emission(trace, calls, sharing, prefetch).run();
}

}  // namespace reshard::sim
