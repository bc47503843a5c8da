// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/choices.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/base/errors.h"
#include "sim/dispatch/dispatched.h"
#include "sim/dispatch/recorded.h"

namespace reshard::sim {
namespace {

// How many candidates of a call are considered further, and how many of them with the same outputs:
// these differ in the copies of inputs that they leave.
constexpr std::size_t kMaxOptions = 12, kOptionsPerOutputs = 3;

std::size_t moves_of(const Candidate& candidate, const std::vector<const TensorSpec*>& inputs) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && candidate.in[i] && *candidate.in[i] != inputs[i]->placements) ++out;
  return out;
}

std::vector<Candidate> few_best(const std::vector<Candidate>& all,
                                const std::vector<const TensorSpec*>& inputs) {
  struct Ranked {
    double cost_us;
    std::size_t moves;
    const Candidate* candidate;
  };
  std::vector<Ranked> ranked;
  for (const Candidate& candidate : all)
    if (candidate.cost_us < std::numeric_limits<double>::infinity())
      ranked.push_back({candidate.cost_us, moves_of(candidate, inputs), &candidate});
  std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return std::tie(a.cost_us, a.moves) < std::tie(b.cost_us, b.moves);
  });
  std::vector<Candidate> out;
  for (const Ranked& each : ranked) {
    auto equal = std::count_if(out.begin(), out.end(), [&](const Candidate& kept) {
      return kept.out == each.candidate->out;
    });
    if (to_index(equal) < kOptionsPerOutputs) out.push_back(*each.candidate);
    if (out.size() == kMaxOptions) break;
  }
  return out;
}

bool contains(const std::vector<OpPlacements>& list, const OpPlacements& placements) {
  return std::find(list.begin(), list.end(), placements) != list.end();
}

// Masked indices are whole; only another look-up can use them.
bool is_source(const OpPlacements& copy) {
  return std::none_of(copy.begin(), copy.end(), [](const OpPlacement& placement) {
    return placement.kind == OpPlacement::Kind::MaskPartial;
  });
}

}  // namespace

std::string_view text(DispatchMode mode) { return mode == DispatchMode::Torch ? "torch" : "best"; }

OpCall Choices::call_of(const OperatorLine& line, const HeldOf& held) {
  OpCall out{&line.op(), {}, line.attributes, line.loss_parallel};
  for (const OperatorLine::Argument& argument : line.in) {
    OpArgument& tensors = out.arguments.emplace_back();
    tensors.is_list = argument.is_list;
    for (ValueId value : argument.values)
      tensors.tensors.push_back(value == kNoValue ? nullptr : &held(value).spec);
  }
  return out;
}

const TorchMoves& Choices::moves_on(const MeshRef& mesh) {
  if (mesh == last_mesh_) return *last_moves_;
  auto known = std::find_if(meshes_.begin(), meshes_.end(),
                            [&](const TorchMoves& moves) { return moves.mesh() == *mesh; });
  last_moves_ = known == meshes_.end() ? &meshes_.emplace_back(mesh, devices_per_host_) : &*known;
  last_mesh_ = mesh;
  return *last_moves_;
}

std::uint64_t Choices::number_of(const MeshRef& mesh) {
  const TorchMoves& moves = moves_on(mesh);
  std::uint64_t number = 0;
  while (&meshes_[number] != &moves) ++number;
  return number;
}

double Choices::time_us(const TensorSpec& from, const OpPlacements& to, const MeshRef& mesh) {
  try {
    std::optional<Request> request = request_of(from, to, mesh);
    return request ? static_cast<double>(time_ps_(*request)) * 1e-6 : 0.0;
  } catch (const InputError&) {  // no request does this
    return std::numeric_limits<double>::infinity();
  }
}

MoveCost Choices::time_on(const MeshRef& mesh) {
  return [this, mesh, number = number_of(mesh)](const TensorSpec& from, const OpPlacements& to) {
    SpecKey key{number};
    add_tensor(&from, key);
    add_placements(to, key);
    auto known = times_us_.find(key);
    if (known == times_us_.end())
      known = times_us_.emplace(std::move(key), time_us(from, to, mesh)).first;
    return known->second;
  };
}

Decision Choices::by_torch(const OpCall& call, const MeshRef& mesh) {
  const TorchMoves& moves = moves_on(mesh);
  return decide(call, mesh->shape(), [&moves](const TensorSpec& from, const OpPlacements& to) {
    return moves.cost_us(from, to);
  });
}

Decision Choices::by_time(const OpCall& call, const MeshRef& mesh) {
  Decision out = decide(call, mesh->shape(), time_on(mesh), {Ties::Fewest, true, true});
  out.all = few_best(out.all, flat_inputs(call));
  return out;
}

Decision Choices::explicit_one(const OperatorLine& line, const HeldOf& held) {
  const TensorSpec& from = held(line.in[0].values[0]).spec;
  for (const OpPlacement& placement : line.to)
    if (placement.is_shard_like() && placement.dim >= from.meta.shape.size())
      throw InputError(
          fmt::format("to: {} shards a dim that {} does not have", text(line.to), text(from)));
  Decision out;
  out.wanted = {line.to};
  out.outputs = {TensorSpec{from.meta, line.to, false, from.at_least_zero}};
  return out;
}

std::int64_t Choices::bringing_ps(const Held& held, const OpPlacements& to,
                                  const MoveCost& time) const {
  double least = time(held.spec, to);
  for (const OpPlacements& copy : held.brought)
    if (is_source(copy))
      least = std::min(least, time({held.spec.meta, copy, held.spec.of_view}, to));
  return std::isinf(least) ? kNoPlanPs : std::llround(least * 1e6);
}

std::int64_t Choices::catching_up_ps(const Held& from, const Held& to, const MeshRef& mesh) {
  if (from == to) return 0;
  MoveCost time = time_on(mesh);
  Held held = from;
  std::int64_t out = 0;
  auto bring = [&](const OpPlacements& placements) {
    if (placements == from.spec.placements || contains(held.brought, placements)) return;
    out += bringing_ps(held, placements, time);
    held.brought.push_back(placements);
  };
  bring(to.spec.placements);
  for (const OpPlacements& copy : to.brought) bring(copy);
  return out;
}

Choices::Effort Choices::effort(const OperatorLine& line, const HeldOf& held,
                                const std::vector<std::optional<OpPlacements>>& wanted) {
  Effort out;
  std::vector<std::pair<ValueId, const OpPlacements*>> brought;  // by this line itself
  MoveCost time = time_on(line.mesh);
  std::vector<ValueId> inputs = line.flat_in();
  for (std::size_t input = 0; input < std::min(inputs.size(), wanted.size()); ++input) {
    ValueId value = inputs[input];
    if (value == kNoValue || !wanted[input]) continue;
    const OpPlacements& to = *wanted[input];
    const Held& from = held(value);
    if (from.unsized_by > 0) continue;
    if (to == from.spec.placements || contains(from.brought, to)) continue;
    bool by_line = std::any_of(brought.begin(), brought.end(), [&](const auto& move) {
      return move.first == value && *move.second == to;
    });
    if (by_line) continue;
    brought.emplace_back(value, &to);
    out.time_ps += bringing_ps(from, to, time);
    ++out.moves;
  }
  return out;
}

DispatchedMove Choices::move(std::int32_t input, ValueId value, const Held& held,
                             const OpPlacements& to, const MeshRef& mesh, bool shares) {
  if (held.unsized_by > 0) return {input, value, held.spec.placements, to, {}};
  const TorchMoves& moves = moves_on(mesh);
  TensorSpec from = held.spec;
  bool again = shares && contains(held.brought, to);
  // Start from the nearest of its copies.
  if (shares && !again && !held.brought.empty()) {
    MoveCost time = time_on(mesh);
    double least = time(from, to);
    for (const OpPlacements& copy : held.brought) {
      if (!is_source(copy)) continue;
      double other = time({held.spec.meta, copy, held.spec.of_view}, to);
      if (other < least) from.placements = copy;
      least = std::min(least, other);
    }
  }
  DispatchedMove out{
      input, value, from.placements, to, moves.steps(from, to), moves.cost_us(from, to)};
  out.again = again;
  return out;
}

Taken Choices::take(const DispatchLine& line, const HeldOf& held, Decision decision, bool shares) {
  const OperatorLine& op_line = *line.op_line;
  Taken out;
  DispatchedCall& call = out.call;
  call.line = line.number;
  call.id = line.id;
  call.module = op_line.module;
  call.pass = op_line.pass;
  call.op_line = line.op_line;
  call.op = op_line.kind == OperatorLine::Kind::Call ? &op_line.op() : nullptr;
  call.recorded = decision.recorded;
  call.decision = std::move(decision);
  std::vector<ValueId> inputs = op_line.flat_in();
  for (std::size_t i = 0; i < std::min(inputs.size(), call.decision.wanted.size()); ++i) {
    ValueId value = inputs[i];
    if (value == kNoValue) {
      call.in.emplace_back(std::nullopt);
      continue;
    }
    auto own = std::find_if(out.held.begin(), out.held.end(),
                            [&](const auto& entry) { return entry.first == value; });
    const Held& from = own == out.held.end() ? held(value) : own->second;
    call.sized = call.sized && from.unsized_by == 0;
    call.in.emplace_back(from.spec);
    const OpPlacements& to = *call.decision.wanted[i];
    // An explicit redistribution is reported even if nothing moves.
    if (to == from.spec.placements && call.op) continue;
    call.moves.push_back(move(static_cast<std::int32_t>(i), value, from, to, op_line.mesh, shares));
    if (!shares || call.moves.back().again || to == from.spec.placements || !call.sized) continue;
    Held more = from;
    more.brought.push_back(to);
    if (own == out.held.end()) {
      out.held.emplace_back(value, std::move(more));
    } else {
      own->second = std::move(more);
    }
  }
  if (!call.op) call.decision.cost_us = call.moves.front().cost_us;
  for (ValueId value : line.stale) {
    auto own = std::find_if(out.held.begin(), out.held.end(),
                            [&](const auto& entry) { return entry.first == value; });
    if (own == out.held.end()) {
      const Held& there = held(value);
      if (there.brought.empty() && !there.spec.at_least_zero) continue;
      own = out.held.emplace(out.held.end(), value, there);
    }
    own->second.brought.clear();
    own->second.spec.at_least_zero = false;
  }
  give_outputs(op_line, held, out);
  return out;
}

void Choices::give_outputs(const OperatorLine& line, const HeldOf& held, Taken& taken) {
  DispatchedCall& call = taken.call;
  const std::vector<std::optional<TensorSpec>>& outputs = call.decision.outputs;
  for (std::size_t i = 0; i < line.out.size(); ++i) {
    if (line.out[i] == kNoValue) continue;
    std::optional<TensorSpec> spec = i < outputs.size() ? outputs[i] : std::nullopt;
    // An operator that only writes to its inputs returns them.
    if (!spec && outputs.empty() && i < call.in.size()) spec = call.in[i];
    if (!spec)
      throw InputError(fmt::format("out: {} returns {} tensors, found one name more", call.op->name,
                                   outputs.size()));
    bool sized = call.recorded.empty() || is_sized(line, i, held);
    call.sized = call.sized && sized;
    taken.held.emplace_back(line.out[i], Held{*spec, {}, sized ? 0 : call.line});
  }
}

}  // namespace reshard::sim
