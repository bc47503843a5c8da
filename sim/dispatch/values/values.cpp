// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/values/values.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/errors.h"
#include "core/ops/views/view_map.h"
#include "sim/dispatch/random_offsets.h"
#include "sim/dispatch/values/comparing.h"
#include "sim/dispatch/values/left_out.h"
#include "sim/dispatch/values/own_call.h"
#include "sim/operators/complex_numbers.h"
#include "sim/operators/operators.h"

namespace reshard::sim {
namespace {

// Addends of the whole: the whole on the first coordinate of partial axes, zeros on the others.
Sharded cut_up(const TensorSpec& spec, const MeshRef& mesh, const Array& whole) {
  return cut(spec, mesh, [&](std::int64_t addend) {
    return addend == 0 ? whole : Array::zeros(whole.dtype, whole.shape);
  });
}

// Operators with results that are random or uninitialised: only copies can be compared.
bool is_free(std::string_view name) {
  return is_random(name) || name.starts_with("empty_like") || name.starts_with("new_empty");
}

class Checking {
 public:
  Checking(const Trace& trace, DispatchReport& report, const PlanOf& plan_of,
           const OnOutput& on_output)
      : trace_(trace),
        report_(report),
        plan_of_(plan_of),
        comparing_(trace, report, on_output),
        held_(report.values.size()) {
    const auto& places = report.sharing.places;
    for (std::size_t i = 0; i < places.size(); ++i)
      if (places[i]) sharers_[places[i]->whole].push_back(static_cast<ValueId>(i));
  }

  void run(const OnCall& on_call) {
    for (const auto& line : report_.tensors)
      held_[to_index(line->out[0])] = declared(of_pairs(*line));
    std::vector<std::size_t> last_use = last_uses();
    for (std::size_t i = 0; i < report_.calls.size(); ++i) {
      const DispatchedCall& call = report_.calls[i];
      if (on_call)
        on_call(static_cast<std::int64_t>(i), static_cast<std::int64_t>(report_.calls.size()));
      try {
        if (is_unknown(call)) unknown_.note(call);
        if (is_unknown(call) || lacks_inputs(call)) {
          leave_out(call);
        } else if (!call.op) {
          redistribute(call);
        } else {
          compute_call(call);
        }
      } catch (const NotComputed&) {
        unknown_.note(call);
        leave_out(call);
      } catch (const InputError& error) {
        throw error.in(fmt::format("{}:{}", trace_.file, call.line));
      }
      for (ValueId value : named(call))
        if (last_use[to_index(value)] == i) forget(value);
    }
    report_.values_left_out = unknown_.text();
  }

 private:
  // Complex numbers are stored as pairs of real ones, which are cut and moved in the same way.
  static OperatorLine of_pairs(OperatorLine line) {
    line.spec.meta = as_pairs(line.spec.meta);
    return line;
  }
  static bool is_complex(const std::optional<TensorSpec>& spec) {
    return spec && spec->meta.dtype == DType::C64;
  }

  static std::vector<ValueId> named(const DispatchedCall& call) {
    std::vector<ValueId> out = call.op_line->flat_in();
    out.insert(out.end(), call.op_line->out.begin(), call.op_line->out.end());
    std::erase(out, kNoValue);
    return out;
  }

  std::vector<std::size_t> last_uses() const {
    std::vector<std::size_t> out(held_.size(), 0);
    for (std::size_t i = 0; i < report_.calls.size(); ++i)
      for (ValueId value : named(report_.calls[i])) out[to_index(value)] = i;
    return out;
  }

  void forget(ValueId value) {
    held_[to_index(value)].reset();
    copies_.erase(value);
  }

  bool lacks_inputs(const DispatchedCall& call) const {
    std::vector<ValueId> inputs = call.op_line->flat_in();
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](ValueId value) { return value != kNoValue && !held_[to_index(value)]; });
  }

  // Nothing is known any longer of what it makes or writes to, and of what shares memory with that.
  void leave_out(const DispatchedCall& call) {
    ++report_.calls_left_out;
    for (ValueId value : changed_by(call)) {
      held_[to_index(value)].reset();
      for (ValueId other : sharers_[report_.sharing.places[to_index(value)]->whole]) forget(other);
    }
  }

  const Sharded& held(ValueId value) const {
    RESHARD_CHECK(held_[to_index(value)].has_value(), "a value that no line has produced");
    return *held_[to_index(value)];
  }

  void redistribute(const DispatchedCall& call) {
    const Sharded from = held(call.op_line->in[0].values[0]);
    Sharded to = brought(call.moves.front());
    comparing_.compare(call, 0, assemble(from).array, to, 1);
    if (call.op_line->out[0] != kNoValue) held_[to_index(call.op_line->out[0])] = std::move(to);
  }

  // The inputs in the wanted placements.
  std::vector<std::optional<Sharded>> brought(const DispatchedCall& call) {
    std::vector<std::optional<Sharded>> out;
    auto move = call.moves.begin();
    std::vector<ValueId> inputs = call.op_line->flat_in();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (move != call.moves.end() && to_index(move->input) == i) {
        out.emplace_back(brought(*move++));
      } else {
        bool there = i < call.in.size() && call.in[i];
        out.push_back(there ? std::optional(held(inputs[i])) : std::nullopt);
      }
    }
    return out;
  }

  // From the value or a copy of it; kept if copies are reused.
  Sharded brought(const DispatchedMove& move) {
    std::vector<Sharded>& copies = copies_[move.value];
    auto copy_at = [&](const OpPlacements& placements) {
      return std::find_if(copies.begin(), copies.end(),
                          [&](const Sharded& copy) { return copy.spec.placements == placements; });
    };
    if (move.again) {
      auto copy = copy_at(move.to);
      RESHARD_CHECK(copy != copies.end(), "a copy that nothing has moved");
      return *copy;
    }
    const Sharded& value = held(move.value);
    bool from_value = move.from == value.spec.placements;
    auto copy = from_value ? copies.end() : copy_at(move.from);
    RESHARD_CHECK(from_value || copy != copies.end(), "a copy that nothing has moved");
    Sharded out = moved(from_value ? value : *copy, move.to, plan_of_);
    // Stored under the placements by which it is looked up, with masks.
    if (report_.mode == DispatchMode::Best) {
      copies.push_back(out);
      copies.back().spec.placements = move.to;
    }
    return out;
  }

  std::vector<ArrayArgument> arguments(const DispatchedCall& call,
                                       const std::vector<const Array*>& flat) const {
    std::vector<ArrayArgument> out;
    std::size_t input = 0;
    for (const OperatorLine::Argument& argument : call.op_line->in) {
      ArrayArgument& arrays = out.emplace_back();
      arrays.is_list = argument.is_list;
      for (std::size_t i = 0; i < argument.values.size(); ++i)
        arrays.arrays.push_back(flat[input++]);
    }
    return out;
  }

  void compute_call(const DispatchedCall& call) {
    std::vector<std::optional<Sharded>> inputs = brought(call);
    const MeshRef& mesh = call.op_line->mesh;
    std::vector<std::optional<Layout>> layouts;
    std::vector<Sharded> outputs;
    for (const auto& spec : results_of(call)) {
      layouts.push_back(spec ? std::optional(layout_of(*spec, mesh)) : std::nullopt);
      outputs.push_back({spec.value_or(TensorSpec{}), mesh, {}});
      outputs.back().spec.meta = as_pairs(outputs.back().spec.meta);
    }
    if (call.decision.handled) {
      check(call, inputs, handled(call, inputs, outputs));
    } else {
      compute_everywhere(call, inputs, layouts, outputs);
      check(call, inputs, outputs);
    }
    ++report_.calls_computed;
    keep(call, outputs);
  }

  // The outputs; for optimizers, the tensors that they work on.
  static std::vector<std::optional<TensorSpec>> results_of(const DispatchedCall& call) {
    if (!call.op->rule || call.op->rule->name != "optimizer") return call.decision.outputs;
    std::vector<std::optional<TensorSpec>> out = call.in;
    for (std::size_t i = 0; i < out.size(); ++i)
      if (out[i]) out[i]->placements = *call.decision.wanted[i];
    return out;
  }

  void keep(const DispatchedCall& call, const std::vector<Sharded>& outputs) {
    const OperatorLine& op_line = *call.op_line;
    std::vector<std::size_t> written = written_inputs(*call.op, op_line);
    bool all_inputs = call.decision.outputs.empty();
    if (call.op->in_place || call.op->writes_out)
      for (std::size_t i = 0; i < written.size(); ++i)
        if (std::size_t at = all_inputs ? written[i] : i;
            at < outputs.size() && !outputs[at].shards.empty())
          write(op_line.flat_in()[written[i]], outputs[at]);
    std::vector<std::optional<std::size_t>> same = outputs_written(op_line, written);
    for (std::size_t i = 0; i < op_line.out.size(); ++i) {
      std::size_t at = all_inputs && same[i] ? *same[i] : i;
      if (op_line.out[i] == kNoValue || at >= outputs.size()) continue;
      bool is_input = outputs[at].shards.empty() && all_inputs;
      held_[to_index(op_line.out[i])] = is_input ? held(op_line.flat_in()[at]) : outputs[at];
    }
  }

  // Writes to all values that share its memory on the ranks; copies of the old values are not
  // reused.
  void write(ValueId value, const Sharded& now) {
    if (value == kNoValue) return;
    const MemoryPlace& place = *report_.sharing.places[to_index(value)];
    for (ValueId other : sharers_[place.whole]) {
      copies_.erase(other);
      const MemoryPlace& there = *report_.sharing.places[to_index(other)];
      std::optional<Sharded>& held = held_[to_index(other)];
      if (!held || there.memory != place.memory) continue;
      if (other == value)
        held = now;
      else if (overlap(there.view, place.view))
        write_through(now, place.view, *held, there.view);
    }
  }

  // The ranks of a handler exchange what they have: together they know the whole.
  const std::vector<Sharded>& handled(const DispatchedCall& call,
                                      const std::vector<std::optional<Sharded>>& inputs,
                                      std::vector<Sharded>& outputs) const {
    std::vector<Array> wholes;
    std::vector<const Array*> flat;
    wholes.reserve(inputs.size());
    for (const std::optional<Sharded>& input : inputs) {
      if (input) wholes.push_back(assemble(*input).array);
      flat.push_back(input ? &wholes.back() : nullptr);
    }
    ArrayResults results =
        compute(call.op->name, arguments(call, flat), call.op_line->attributes, {});
    for (std::size_t i = 0; i < outputs.size(); ++i)
      outputs[i] = cut_up(outputs[i].spec, call.op_line->mesh, *results[i]);
    return outputs;
  }

  void compute_everywhere(const DispatchedCall& call,
                          const std::vector<std::optional<Sharded>>& inputs,
                          const std::vector<std::optional<Layout>>& layouts,
                          std::vector<Sharded>& outputs) {
    for (std::int32_t position = 0; position < call.op_line->mesh->size(); ++position) {
      ArrayResults results = at_position(call, inputs, layouts, position);
      for (std::size_t i = 0; i < outputs.size() && i < results.size(); ++i)
        if (layouts[i] && results[i]) outputs[i].shards.push_back(as_pairs(*std::move(results[i])));
    }
  }

  ArrayResults at_position(const DispatchedCall& call,
                           const std::vector<std::optional<Sharded>>& inputs,
                           const std::vector<std::optional<Layout>>& layouts,
                           std::int32_t position) {
    std::vector<const Array*> flat;
    std::vector<Array> masked;
    masked.reserve(inputs.size());
    std::optional<Mask> mask;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      flat.push_back(inputs[i] ? &inputs[i]->shards[to_index(position)] : nullptr);
      if (!inputs[i]) continue;
      if (is_complex(call.in[i])) {
        masked.push_back(as_complex(*flat.back()));
        flat.back() = &masked.back();
      }
      if (!is_masked_for(call, i)) continue;
      mask = mask_at(*call.decision.wanted[i], call.op_line->mesh, position);
      masked.push_back(shifted(*flat.back(), *mask));
      flat.back() = &masked.back();
    }
    // A rank without a part of the looked-up tensor contributes zeros.
    if (mask && mask->lo == mask->hi)
      return {
          Array::zeros(call.decision.outputs[0]->meta.dtype, layouts[0]->local_shape(position))};
    OwnHeads heads(call, inputs, position);
    heads.narrow(flat);
    OwnCall own = own_call(call, layouts, position);
    RandomStream random;
    if (!call.random_starts.empty()) random.offset = call.random_starts[to_index(position)];
    ArrayResults results = compute(own.name, arguments(call, flat), own.attributes, random);
    if (mask) clear_others(*mask, *results[0]);
    heads.widen(results);
    return results;
  }

  // Whether an input becomes the indices of a look-up. A mask left by an earlier look-up stays.
  static bool is_masked_for(const DispatchedCall& call, std::size_t input) {
    const OpPlacements &wanted = *call.decision.wanted[input], &lies = call.in[input]->placements;
    for (std::size_t axis = 0; axis < wanted.size(); ++axis)
      if (wanted[axis].kind == OpPlacement::Kind::MaskPartial && wanted[axis] != lies[axis])
        return true;
    return false;
  }
  // ---- comparison with the whole

  // Whether an input's addends were summed for the call.
  static bool is_summed(const DispatchedCall& call, std::size_t input) {
    if (input >= call.in.size() || !call.in[input]) return false;
    auto has_addends = [](const OpPlacements& placements) {
      return std::any_of(placements.begin(), placements.end(),
                         [](const OpPlacement& placement) { return placement.is_partial(); });
    };
    return has_addends(call.in[input]->placements) && !has_addends(*call.decision.wanted[input]);
  }

  // Sums are rounded in the order in which ranks add, which softmax and similar operators amplify:
  // so a call is compared on the sums that its ranks have, and these sums are compared separately.
  Array whole_input(const DispatchedCall& call, std::size_t input, ValueId value,
                    const std::optional<Sharded>& brought) {
    Array out = assemble(held(value)).array;
    if (is_summed(call, input) && brought)
      if (std::optional<Array> sums = comparing_.brought(call, input, out, *brought))
        out = *std::move(sums);
    bool complex = input < call.in.size() && is_complex(call.in[input]);
    return complex ? as_complex(std::move(out)) : out;
  }

  void check(const DispatchedCall& call, const std::vector<std::optional<Sharded>>& inputs,
             const std::vector<Sharded>& outputs) {
    if (is_free(call.op->name)) {
      for (std::size_t i = 0; i < outputs.size(); ++i)
        if (!outputs[i].shards.empty())
          (void)comparing_.put_together(call, fmt::format("output {}", i), outputs[i]);
      return;
    }
    const std::vector<ValueId> values = call.op_line->flat_in();
    std::vector<Array> wholes;
    std::vector<const Array*> flat;
    wholes.reserve(values.size());
    std::int64_t largest = 1;
    for (std::size_t i = 0; i < values.size(); ++i) {
      bool is_there = values[i] != kNoValue;
      if (is_there) wholes.push_back(whole_input(call, i, values[i], inputs[i]));
      flat.push_back(is_there ? &wholes.back() : nullptr);
      if (is_there) largest = std::max(largest, wholes.back().count());
    }
    OwnCall own{call.op->name, call.op_line->attributes};
    if (call.op->is_view) {
      ViewMap map = view_map(call.op->name, call.in[0]->meta, call.op_line->attributes);
      LocalView whole = local_view(map, map.output);
      own = {whole.name, whole.attributes};
    }
    ArrayResults expected = compute(own.name, arguments(call, flat), own.attributes, {});
    for (std::size_t i = 0; i < outputs.size() && i < expected.size(); ++i) {
      if (outputs[i].shards.empty() || !expected[i]) continue;
      std::int64_t folded = largest / std::max<std::int64_t>(expected[i]->count(), 1) + 1;
      comparing_.compare(call, i, as_pairs(*std::move(expected[i])), outputs[i], folded);
    }
  }

  const Trace& trace_;
  DispatchReport& report_;
  const PlanOf& plan_of_;
  Comparing comparing_;
  UnknownOperators unknown_;
  std::vector<std::optional<Sharded>> held_;          // by value
  std::map<ValueId, std::vector<Sharded>> copies_;    // Best: redistributed copies
  std::map<MemoryId, std::vector<ValueId>> sharers_;  // by their memory as whole tensors
};

}  // namespace

void check_values(const Trace& trace, DispatchReport& report, const PlanOf& plan_of,
                  const OnCall& on_call, const OnOutput& on_output) {
  Checking(trace, report, plan_of, on_output).run(on_call);
}

}  // namespace reshard::sim
