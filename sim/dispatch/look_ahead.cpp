// SPDX-License-Identifier: BSD-3-Clause
// Chooses the candidates of all calls of a trace together, by a search that keeps several states.
#include "sim/dispatch/choices.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/errors.h"
#include "core/ops/decision_cache.h"
#include "core/ops/rules/rules.h"
#include "sim/dispatch/recorded.h"

namespace reshard::sim {
namespace {

using SharedHeld = std::shared_ptr<const Held>;

struct State {
  std::int64_t time_ps = 0, moves = 0;
  std::map<ValueId, SharedHeld> own;  // values that differ between states
  std::vector<std::shared_ptr<const Taken>> pending;
};

class Search {
 public:
  Search(const std::vector<DispatchLine>& lines, const std::vector<std::optional<Held>>& declared,
         const std::string& file, Choices& choices)
      : lines_(lines), file_(file), choices_(choices) {
    for (const std::optional<Held>& value : declared)
      base_.push_back(value ? std::make_shared<const Held>(*value) : nullptr);
    find_uses();
  }

  std::vector<Taken> run() {
    states_.emplace_back();
    for (std::size_t line = 0; line < lines_.size(); ++line) {
      advance(line);
      while (settle()) {
      }
    }
    for (const auto& taken : states_.front().pending) out_.push_back(*taken);
    return std::move(out_);
  }

 private:
  // An alternative for the line from one state.
  struct Option {
    std::size_t state;
    const Candidate* candidate;  // null: the decision itself
    std::int64_t time_ps, moves;
  };

  void find_uses() {
    for (std::size_t line = 0; line < lines_.size(); ++line) {
      for (ValueId value : lines_[line].op_line->flat_in()) use(value, line);
      for (ValueId value : lines_[line].op_line->out) use(value, line);
    }
  }
  // Whether inputs may have placements other than their present ones, or those that a handler
  // wants.
  static bool may_choose(const OperatorLine& op_line) {
    if (op_line.kind != OperatorLine::Kind::Call) return true;
    const Operator& op = op_line.op();
    return !op_line.without_rule && !op.keeps_first && !op.in_place && !op.writes_out && !op.each &&
           !op.is_stack && !is_handled({&op, {}, op_line.attributes, op_line.loss_parallel});
  }
  void use(ValueId value, std::size_t line) {
    if (value == kNoValue) return;
    if (to_index(value) >= uses_.size()) uses_.resize(to_index(value) + 1);
    if (to_index(value) >= base_.size()) base_.resize(to_index(value) + 1);
    Uses& uses = uses_[to_index(value)];
    uses.last = line;
    uses.mesh = lines_[line].op_line->mesh;
    uses.stays = uses.stays || !may_choose(*lines_[line].op_line);
  }

  const SharedHeld& held(const State& state, ValueId value) const {
    auto own = state.own.find(value);
    return own == state.own.end() ? base_[to_index(value)] : own->second;
  }
  HeldOf held_in(const State& state) const {
    return [this, &state](ValueId value) -> const Held& { return *held(state, value); };
  }

  Decision decision_in(const State& state, const OperatorLine& op_line) {
    return decision_of(op_line, held_in(state), [&](const OpCall& call) {
      return cache_.of(call, choices_.number_of(op_line.mesh),
                       [&] { return choices_.by_time(call, op_line.mesh); });
    });
  }

  std::vector<Option> options(const OperatorLine& op_line, std::vector<Decision>& decisions) {
    std::vector<Option> out;
    std::optional<InputError> refusal;
    decisions.resize(states_.size());
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const State& state = states_[i];
      auto add = [&](const Candidate* candidate, const auto& wanted) {
        Choices::Effort effort = choices_.effort(op_line, held_in(state), wanted);
        out.push_back({i, candidate, state.time_ps + effort.time_ps, state.moves + effort.moves});
      };
      try {
        decisions[i] = decision_in(state, op_line);
        for (const Candidate& candidate : decisions[i].all) add(&candidate, candidate.in);
        if (decisions[i].all.empty()) add(nullptr, decisions[i].wanted);
      } catch (const InputError& error) {
        if (!refusal) refusal = error;
      }
    }
    if (out.empty()) throw *refusal;
    std::stable_sort(out.begin(), out.end(), [](const Option& a, const Option& b) {
      return std::tie(a.time_ps, a.moves) < std::tie(b.time_ps, b.moves);
    });
    return out;
  }

  void advance(std::size_t line) {
    try {
      std::vector<Decision> decisions;
      std::vector<State> next;
      for (const Option& option : options(*lines_[line].op_line, decisions)) {
        State state = gone(line, option, decisions[option.state]);
        bool idle = std::any_of(next.begin(), next.end(),
                                [&](const State& other) { return does_as_well(other, state); });
        if (!idle) next.push_back(std::move(state));
        if (next.size() == kStates) break;
      }
      states_ = std::move(next);
    } catch (const InputError& error) {
      throw error.in(fmt::format("{}:{}", file_, lines_[line].number));
    }
  }

  // Whether `a` can redistribute what it holds to the placements in `b` and be no later.
  bool does_as_well(const State& a, const State& b) {
    std::int64_t left_ps = b.time_ps - a.time_ps;
    auto catches_up = [&](ValueId value, const SharedHeld& in_a, const SharedHeld& in_b) {
      if (in_a == in_b) return true;
      if (uses_[to_index(value)].stays && in_a->spec != in_b->spec) return false;
      left_ps -= choices_.catching_up_ps(*in_a, *in_b, uses_[to_index(value)].mesh);
      return left_ps >= 0;
    };
    return std::all_of(b.own.begin(), b.own.end(),
                       [&](const auto& entry) {
                         return catches_up(entry.first, held(a, entry.first), entry.second);
                       }) &&
           std::all_of(a.own.begin(), a.own.end(), [&](const auto& entry) {
             return b.own.contains(entry.first) ||
                    catches_up(entry.first, entry.second, base_[to_index(entry.first)]);
           });
  }

  State gone(std::size_t line, const Option& option, const Decision& decision) {
    const State& from = states_[option.state];
    const OperatorLine& op_line = *lines_[line].op_line;
    HeldOf held = held_in(from);
    Decision taken_decision = decision;
    if (option.candidate) {
      OpCall call = Choices::call_of(op_line, held);
      taken_decision = taking(decision, *option.candidate, flat_inputs(call));
    }
    auto taken = std::make_shared<const Taken>(
        choices_.take(lines_[line], held, std::move(taken_decision), true));
    State out{option.time_ps, option.moves, from.own, from.pending};
    for (const auto& [value, now] : taken->held) out.own[value] = std::make_shared<const Held>(now);
    std::erase_if(out.own,
                  [&](const auto& entry) { return uses_[to_index(entry.first)].last <= line; });
    out.pending.push_back(std::move(taken));
    return out;
  }

  // Settles the first open choice if all states agree on it, or if it has waited long enough.
  bool settle() {
    if (states_.front().pending.empty()) return false;
    std::shared_ptr<const Taken> first = states_.front().pending.front();
    auto agrees = [&](const State& state) { return state.pending.front() == first; };
    bool all = std::all_of(states_.begin(), states_.end(), agrees);
    if (!all && states_.front().pending.size() < kLag) return false;
    std::erase_if(states_, [&](const State& state) { return !agrees(state); });
    for (State& state : states_) state.pending.erase(state.pending.begin());
    for (const auto& [value, now] : first->held) share(value);
    out_.push_back(*first);
    return true;
  }

  // A value that is equal in all states moves to base_.
  void share(ValueId value) {
    auto own = states_.front().own.find(value);
    if (own == states_.front().own.end()) return;
    SharedHeld held = own->second;
    for (const State& state : states_) {
      auto other = state.own.find(value);
      if (other == state.own.end() || *other->second != *held) return;
    }
    base_[to_index(value)] = std::move(held);
    for (State& state : states_) state.own.erase(value);
  }

  const std::vector<DispatchLine>& lines_;
  const std::string& file_;
  Choices& choices_;
  DecisionCache cache_{std::int64_t{1} << 16};
  struct Uses {
    std::size_t last = 0;
    MeshRef mesh;
    bool stays = false;  // a line takes it in its present placements
  };
  std::vector<Uses> uses_;        // by value
  std::vector<SharedHeld> base_;  // by value
  std::vector<State> states_;     // best first
  std::vector<Taken> out_;
};

}  // namespace

std::vector<Taken> look_ahead(const std::vector<DispatchLine>& lines,
                              const std::vector<std::optional<Held>>& declared,
                              const std::string& file, Choices& choices) {
  return Search(lines, declared, file, choices).run();
}

}  // namespace reshard::sim
