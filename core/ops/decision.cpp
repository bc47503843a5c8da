// SPDX-License-Identifier: BSD-3-Clause
// Checks a call and decides it: as a view, a stack or a list, by a handler, or by its rule's rows.
#include "core/ops/decision.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/errors.h"
#include "core/ops/candidates.h"
#include "core/ops/decompositions/steps.h"
#include "core/ops/rules/rules.h"
#include "core/ops/torch_fault.h"
#include "core/ops/views/view_rule.h"

namespace reshard {
namespace {

// ---- the call's arguments, in the order of its operator

void check_arguments(const OpCall& call) {
  const Operator& op = *call.op;
  check_attributes(op, call.attributes);
  std::size_t most = op.tensors.size() + (op.writes_out ? kMaxAxes : 0);
  if (call.arguments.size() > most)
    throw InputError(fmt::format("{}: expected at most {} tensors, found {}", op.name, most,
                                 call.arguments.size()));
  for (std::size_t i = 0; i < op.tensors.size(); ++i) {
    const OpTensor& tensor = op.tensors[i];
    bool there = i < call.arguments.size() && !call.arguments[i].tensors.empty();
    if (there && call.arguments[i].is_list != tensor.list)
      throw InputError(fmt::format("{}: {} is {}", op.name, tensor.name,
                                   tensor.list ? "a list of tensors" : "one tensor"));
    if (tensor.optional || tensor.list) continue;
    bool is_number =
        op.rule && op.rule->name.starts_with("pointwise") && call.attributes.has(tensor.name);
    if (!is_number && (!there || !call.arguments[i].tensors.front()))
      throw InputError(fmt::format("{} needs a tensor {}", op.name, tensor.name));
  }
}

// The tensors of a whole call, or those at one position of its lists.
struct CallTensors {
  std::vector<OpArgument> arguments;
  std::vector<const TensorSpec*> inputs;  // that are present
  std::vector<std::size_t> places;        // indices of these among the flat inputs
};

CallTensors whole_call(const OpCall& call) {
  CallTensors out{call.arguments, {}, {}};
  std::size_t place = 0;
  for (const OpArgument& argument : call.arguments)
    for (const TensorSpec* tensor : argument.tensors) {
      if (tensor) {
        out.inputs.push_back(tensor);
        out.places.push_back(place);
      }
      ++place;
    }
  return out;
}

// Tensors that are not in lists take part at every position.
CallTensors at_position(const OpCall& call, std::size_t position) {
  CallTensors out;
  std::size_t place = 0;
  for (const OpArgument& argument : call.arguments) {
    std::size_t at = argument.is_list ? position : 0;
    const TensorSpec* tensor = at < argument.tensors.size() ? argument.tensors[at] : nullptr;
    out.arguments.push_back({false, {tensor}});
    if (tensor) {
      out.inputs.push_back(tensor);
      out.places.push_back(place + at);
    }
    place += argument.tensors.size();
  }
  return out;
}

OpSite site_of(const OpCall& call, const CallTensors& part) {
  OpSite out{*call.op, {}, call.attributes};
  std::size_t read = call.op->writes_out ? call.op->tensors.size() : part.arguments.size();
  for (std::size_t i = 0; i < std::min(read, part.arguments.size()); ++i) {
    OpSite::Argument& argument = out.arguments.emplace_back();
    for (const TensorSpec* tensor : part.arguments[i].tensors)
      argument.tensors.push_back(tensor ? &tensor->meta : nullptr);
  }
  out.arguments.resize(std::max(out.arguments.size(), call.op->tensors.size()));
  out.placed = part.inputs;
  return out;
}

// ---- one decision

// An output's _StridedShard counts as made by a view if all those of the inputs do.
void mark_views(const std::vector<const TensorSpec*>& inputs, Decision& decision) {
  bool of_view = true;
  for (const TensorSpec* input : inputs)
    if (input && has_strided(input->placements)) of_view = of_view && input->of_view;
  for (std::optional<TensorSpec>& output : decision.outputs)
    if (output && has_strided(output->placements)) output->of_view = of_view;
}

// Marks outputs that are known to be non-negative: norms and magnitudes are, and so are results of
// moving such tensors or of taking their maximum or minimum.
void mark_signs(const OpCall& call, const std::vector<const TensorSpec*>& inputs,
                Decision& decision) {
  static constexpr std::string_view kMakers[]{"abs", "_foreach_abs", "linalg_vector_norm", "norm",
                                              "_foreach_norm"};
  static constexpr std::string_view kKeepers[]{"alias",  "amax",   "amin",    "cat",
                                               "clone",  "detach", "max",     "min",
                                               "select", "slice",  "_to_copy"};
  std::string_view name = call.op->name;
  name = name.substr(0, name.find('.'));
  auto is_of = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  bool keeps = call.op->is_view || call.op->is_stack || is_of(kKeepers);
  bool kept = keeps && !inputs.empty() &&
              std::all_of(inputs.begin(), inputs.end(),
                          [](const TensorSpec* input) { return !input || input->at_least_zero; });
  for (std::optional<TensorSpec>& output : decision.outputs)
    if (output && (kept || is_of(kMakers)) && is_floating(output->meta.dtype))
      output->at_least_zero = true;
}

Decision decide_view(const OpCall& call, std::span<const std::int32_t> sizes,
                     const MoveCost& cost) {
  if (call.arguments.empty() || call.arguments[0].tensors.empty() || !call.arguments[0].tensors[0])
    throw InputError(fmt::format("{} needs a tensor", call.op->name));
  const TensorSpec& input = *call.arguments[0].tensors[0];
  ViewMap map = view_map(call.op->name, input.meta, call.attributes);
  ViewResult result = propagate(map, input, sizes);
  if (!result.refusal.empty())
    throw InputError(fmt::format("{}: {}{}{}", call.op->name, result.refusal,
                                 result.corrected.empty() ? "" : "; ", result.corrected));
  if (call.op->in_place && result.wanted != input.placements)
    throw InputError(
        fmt::format("{}: in-place operations that require placement changes are not "
                    "supported",
                    call.op->name));
  Decision out;
  out.wanted = {result.wanted};
  out.outputs = {TensorSpec{{map.output, input.meta.dtype}, result.output, result.of_view}};
  // PyTorch's cost for a user's _StridedShard, even if it stays.
  out.cost_us = has_strided(input.placements) && !input.of_view
                    ? std::numeric_limits<double>::infinity()
                    : cost(input, result.wanted);
  out.corrected = result.corrected;
  return out;
}

// The placements that a tensor can be brought to by changing one axis, or by replicating all.
std::vector<OpPlacements> other_layouts(const TensorSpec& input,
                                        std::span<const std::int32_t> sizes) {
  std::vector<OpPlacements> out{OpPlacements(sizes.size(), OpPlacement::replicate())};
  for (std::size_t axis = 0; axis < sizes.size(); ++axis)
    for (int d = -1; d < input.meta.shape.size(); ++d) {
      OpPlacements& option = out.emplace_back(input.placements);
      option[axis] = d < 0 ? OpPlacement::replicate() : OpPlacement::shard(d);
    }
  auto is_none = [&](const OpPlacements& option) {
    return option == input.placements || !can_lie(input.meta.shape, option, sizes);
  };
  std::erase_if(out, is_none);
  return out;
}

// A view of its input's placements, or, if these are refused, of the cheapest ones; all candidates
// are listed.
Decision choose_view(const OpCall& call, std::span<const std::int32_t> sizes,
                     const MoveCost& cost) {
  std::optional<InputError> refusal;
  std::vector<Decision> options;
  auto add = [&](const OpCall& option) {
    try {
      options.push_back(decide_view(option, sizes, cost));
    } catch (const InputError& error) {
      if (!refusal) refusal = error;
    }
  };
  add(call);
  bool moves_first = options.empty();
  const TensorSpec& input = *flat_inputs(call).at(0);
  for (OpPlacements& placements : other_layouts(input, sizes)) {
    TensorSpec brought{input.meta, std::move(placements)};
    OpCall option = call;
    option.arguments[0].tensors[0] = &brought;
    add(option);
  }
  if (options.empty()) throw *refusal;
  for (Decision& option : options)
    option.cost_us = *option.wanted[0] == input.placements ? 0 : cost(input, *option.wanted[0]);
  auto cheaper = [](const Decision& a, const Decision& b) { return a.cost_us < b.cost_us; };
  Decision out =
      moves_first ? *std::min_element(options.begin(), options.end(), cheaper) : options[0];
  for (Decision& option : options)
    out.all.push_back({std::move(option.wanted), {option.outputs[0]->placements}, option.cost_us});
  return out;
}

Decision decide_part(const OpCall& call, const CallTensors& part,
                     std::span<const std::int32_t> sizes, const MoveCost& cost,
                     const Choosing& choosing) {
  OpSite site = site_of(call, part);
  site.outputs = call.op->rule->metas(site);
  try {
    Decision out = choose(site, part.inputs, rows_of(site, choosing), sizes, cost, choosing);
    out.corrected = torch_fault(site, part.inputs, sizes, cost, choosing, out);
    if (is_decomposed(*call.op)) out.corrected = fault_of_steps(site, sizes, out.wanted);
    mark_views(part.inputs, out);
    return out;
  } catch (const InputError& error) {
    std::string_view fault = torch_fault_of_refused(site, part.inputs, sizes, cost, choosing);
    if (fault.empty()) throw;
    throw InputError(fmt::format("{}; {}", error.what(), fault));
  }
}

std::size_t flat_count(const OpCall& call) {
  std::size_t out = 0;
  for (const OpArgument& argument : call.arguments) out += argument.tensors.size();
  return out;
}

// Turns candidates of `part` into candidates of the whole call, which has `count` inputs.
void spread_all(const CallTensors& part, std::size_t count, Decision& whole) {
  for (Candidate& candidate : whole.all) {
    std::vector<std::optional<OpPlacements>> in(count);
    for (std::size_t i = 0; i < part.places.size(); ++i)
      in[part.places[i]] = std::move(candidate.in[i]);
    candidate.in = std::move(in);
  }
}

// Copies a decision on `part` into that of the whole call.
void spread(const CallTensors& part, const Decision& decision, Decision& whole) {
  for (std::size_t i = 0; i < part.places.size(); ++i) {
    whole.wanted[part.places[i]] = decision.wanted[i];
    if (!decision.runner_up.empty()) whole.runner_up[part.places[i]] = decision.runner_up[i];
  }
}

// A tensor that is not in a list has the same placements at all positions: those that the first one
// wants. (PyTorch lets later positions assume others.) nullopt if `decision` wants these already.
std::optional<Choosing> with_shared(const OpCall& call, const CallTensors& part,
                                    const Decision& decision, const Decision& first,
                                    const Choosing& choosing) {
  Choosing out = choosing;
  out.held.assign(part.inputs.size(), nullptr);
  bool differs = false;
  std::size_t begin = 0;
  for (const OpArgument& argument : call.arguments) {
    for (std::size_t i = 0; i < part.places.size() && !argument.is_list; ++i) {
      if (part.places[i] != begin || !first.wanted[begin]) continue;
      out.held[i] = &*first.wanted[begin];
      differs = differs || *decision.wanted[i] != *first.wanted[begin];
    }
    begin += argument.tensors.size();
  }
  return differs ? std::optional(out) : std::nullopt;
}

// Positions with equal tensors are decided once.
Decision decide_each(const OpCall& call, std::span<const std::int32_t> sizes, const MoveCost& cost,
                     const Choosing& choosing) {
  std::size_t count = call.arguments.empty() ? 0 : call.arguments[0].tensors.size();
  for (const OpArgument& argument : call.arguments)
    if (argument.is_list && !argument.tensors.empty() && argument.tensors.size() != count)
      throw InputError(fmt::format("{}: lists of {} and {} tensors", call.op->name, count,
                                   argument.tensors.size()));
  Decision out;
  out.wanted.resize(flat_count(call));
  out.runner_up.resize(flat_count(call));
  std::vector<std::pair<CallTensors, Decision>> known;
  auto is_same = [](const CallTensors& a, const CallTensors& b) {
    return std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(),
                      [](const TensorSpec* x, const TensorSpec* y) { return x == y || *x == *y; });
  };
  for (std::size_t position = 0; position < count; ++position) {
    CallTensors part = at_position(call, position);
    auto at = std::find_if(known.begin(), known.end(),
                           [&](const auto& entry) { return is_same(entry.first, part); });
    if (at == known.end()) {
      Choosing within = choosing;
      if (within.ties == Ties::Torch && call.op->name.starts_with("_foreach"))
        within.ties = Ties::First;
      Decision decision = decide_part(call, part, sizes, cost, within);
      if (std::optional<Choosing> held = with_shared(call, part, decision, out, within)) {
        decision = decide_part(call, part, sizes, cost, *held);
        decision.corrected =
            "PyTorch 2.15 is wrong here: a tensor outside the lists is laid out for their first "
            "position, but later positions expect another layout";
      }
      at = known.insert(known.end(), {part, std::move(decision)});
    }
    const Decision& decision = at->second;
    spread(part, decision, out);
    out.cost_us += decision.cost_us;
    out.candidates = std::max(out.candidates, decision.candidates);
    out.ties = std::max(out.ties, decision.ties);
    if (out.corrected.empty()) out.corrected = decision.corrected;
    out.outputs.insert(out.outputs.end(), decision.outputs.begin(), decision.outputs.end());
  }
  return out;
}

}  // namespace

std::vector<const TensorSpec*> flat_inputs(const OpCall& call) {
  std::vector<const TensorSpec*> out;
  for (const OpArgument& argument : call.arguments)
    out.insert(out.end(), argument.tensors.begin(), argument.tensors.end());
  while (!out.empty() && !out.back()) out.pop_back();
  return out;
}

Decision decide(const OpCall& call, std::span<const std::int32_t> sizes, const MoveCost& cost,
                const Choosing& choosing) {
  check_arguments(call);
  Decision out;
  if (is_handled(call)) {
    out = decide_handled(call, sizes, cost);
  } else if (call.op->is_view) {
    out = choosing.cuts_plainly && !call.op->in_place ? choose_view(call, sizes, cost)
                                                      : decide_view(call, sizes, cost);
  } else if (call.op->is_stack) {
    out = decide_stack(call, sizes, cost);
  } else if (call.op->each) {
    out = decide_each(call, sizes, cost, choosing);
  } else {
    CallTensors part = whole_call(call);
    Decision decision = decide_part(call, part, sizes, cost, choosing);
    if (part.inputs.size() == flat_count(call)) {
      out = std::move(decision);
    } else {
      out = decision;
      out.wanted.assign(flat_count(call), std::nullopt);
      out.runner_up.assign(flat_count(call), std::nullopt);
      spread(part, decision, out);
      spread_all(part, flat_count(call), out);
    }
  }
  mark_signs(call, flat_inputs(call), out);
  std::size_t kept = flat_inputs(call).size();
  out.wanted.resize(kept);
  if (!out.runner_up.empty()) out.runner_up.resize(kept);
  for (Candidate& candidate : out.all) candidate.in.resize(kept);
  return out;
}

Decision taking(const Decision& decision, const Candidate& candidate,
                const std::vector<const TensorSpec*>& inputs) {
  Decision out;
  out.wanted = candidate.in;
  out.cost_us = candidate.cost_us;
  out.candidates = decision.candidates;
  out.ties = std::count_if(decision.all.begin(), decision.all.end(), [&](const Candidate& other) {
    return other.cost_us == candidate.cost_us;
  });
  bool is_first = candidate.in == decision.wanted;
  out.runner_up = is_first ? decision.runner_up : decision.wanted;
  out.runner_up_us = is_first ? decision.runner_up_us : decision.cost_us;
  out.outputs = decision.outputs;
  for (std::size_t i = 0; i < out.outputs.size(); ++i)
    if (out.outputs[i]) out.outputs[i]->placements = *candidate.out[i];
  mark_views(inputs, out);
  out.corrected = decision.corrected;
  return out;
}

}  // namespace reshard
