// SPDX-License-Identifier: BSD-3-Clause
// `reshard ops`: lists operators and their rules; for one call, the candidates, their costs, and
// the choice.
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/ops/decision.h"
#include "core/ops/torch_moves.h"
#include "sim/inputs/json_reader.h"
#include "sim/operators/operators.h"
#include "sim/report/json.h"
#include "sim/report/table.h"
#include "sim/report/writers/dispatch_writer.h"
#include "sim/trace/op_values.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/options.h"
#include "tools/cli/output/output.h"

namespace reshard::tools {
namespace {

struct OpsOptions {
  std::string op, mesh;
  std::vector<std::string> in, shapes, dtypes, attributes;
  std::int32_t devices_per_host = 8;
  bool json = false;
};

std::string_view rule_of(const Operator& op) {
  return op.is_view ? "view" : op.is_stack ? "stack" : op.rule->name;
}

std::string arguments_of(const Operator& op) {
  std::string out;
  for (const OpTensor& tensor : op.tensors)
    out += fmt::format("{}{}{}{}", out.empty() ? "" : " ", tensor.name, tensor.optional ? "?" : "",
                       tensor.list ? "[]" : "");
  for (std::string_view attribute : op.attributes) out += fmt::format(" {}=", attribute);
  return out;
}

// Whether its values are computed: "yes", "steps" if those of its steps are, or "no".
std::string_view values_of(const Operator& op) {
  if (op.is_view || sim::computes_itself(op.name)) return "yes";
  return sim::computes(op.name) ? "steps" : "no";
}

std::string operators_text(bool json) {
  if (json)
    return sim::written({{"schema", "reshard.operators/1"},
                         {"operators", sim::list_json(all_operators(), [](const Operator& op) {
                            return sim::Json{{"name", op.name},
                                             {"rule", rule_of(op)},
                                             {"values", values_of(op)},
                                             {"arguments", arguments_of(op)}};
                          })}});
  sim::Table table({"operator", "rule", "values", "tensors and arguments"});
  for (const Operator& op : all_operators())
    table.add_row(
        {op.name, std::string(rule_of(op)), std::string(values_of(op)), arguments_of(op)});
  return table.text(screen_width());
}

// "dim=1", "size=[8,4]", "ord=inf": a value that is not JSON is taken as text.
void read_attribute(const std::string& text, OpAttributes& attributes) {
  std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos)
    throw InputError(fmt::format("--attr: expected NAME=VALUE, found {}", reshard::quoted(text)));
  std::string name = text.substr(0, equals), value = text.substr(equals + 1),
              place = "--attr " + reshard::quoted(name);
  if (attributes.find(name) != nullptr)
    throw InputError(place + ": expected once, found several times");
  auto json = sim::read_json_or_other<nlohmann::json>(value, place, sim::kJsonLine);
  try {
    attributes.set(name, json.is_discarded() ? OpValue(value) : sim::op_value_of(json));
  } catch (const InputError& error) {
    throw error.in(place);
  }
}

// The call, with the tensors that it points to.
struct Asked {
  MeshRef mesh;
  std::vector<std::unique_ptr<TensorSpec>> specs;
  OpCall call;
};

Asked asked(const OpsOptions& options) {
  Asked out{std::make_shared<const Mesh>(parse_mesh(options.mesh, {}, "--mesh")),
            {},
            {&find_operator(options.op), {}, {}}};
  if (options.in.size() != options.shapes.size())
    throw InputError(fmt::format("--shape: expected one for each --in, found {} and {}",
                                 options.shapes.size(), options.in.size()));
  if (options.dtypes.size() > 1 && options.dtypes.size() != options.in.size())
    throw InputError("--dtype: expected one for all, or one for each --in");
  for (std::size_t i = 0; i < options.in.size(); ++i) {
    Shape shape = parse_shape(options.shapes[i], "--shape");
    std::string dtype =
        options.dtypes.empty() ? "f32" : options.dtypes[options.dtypes.size() > 1 ? i : 0];
    PlacementList list = parse_placements(options.in[i], out.mesh->axes(), shape.size(), "--in");
    Layout layout(shape, call_dtype(dtype, "--dtype"), out.mesh, list.placements, list.order);
    out.specs.push_back(std::make_unique<TensorSpec>(
        TensorSpec{{shape, layout.dtype()}, {list.placements.begin(), list.placements.end()}}));
    bool is_list = !out.call.op->tensors.empty() && out.call.op->tensors[0].list;
    if (!is_list || out.call.arguments.empty()) out.call.arguments.push_back({is_list, {}});
    out.call.arguments.back().tensors.push_back(out.specs.back().get());
  }
  for (const std::string& attribute : options.attributes)
    read_attribute(attribute, out.call.attributes);
  return out;
}

PlacedTensors outputs_of(const Decision& decision) {
  PlacedTensors out;
  for (const auto& spec : decision.outputs)
    out.push_back(spec ? std::optional(spec->placements) : std::nullopt);
  return out;
}

std::string decision_json(const Asked& asked, const Decision& decision) {
  return sim::written({{"schema", "reshard.ops/1"},
                       {"operator", asked.call.op->name},
                       {"chosen", sim::placements_json(decision.wanted)},
                       {"out", sim::placements_json(outputs_of(decision))},
                       {"cost_us", sim::cost_json(decision.cost_us)},
                       {"ties", decision.ties},
                       {"corrected", sim::or_null(decision.corrected)},
                       {"candidates", sim::list_json(decision.all, [](const Candidate& candidate) {
                          return sim::Json{{"in", sim::placements_json(candidate.in)},
                                           {"out", sim::placements_json(candidate.out)},
                                           {"cost_us", sim::cost_json(candidate.cost_us)}};
                        })}});
}

std::string decision_text(const Asked& asked, const Decision& decision, const TorchMoves& moves) {
  std::vector<const Candidate*> by_cost;
  for (const Candidate& candidate : decision.all) by_cost.push_back(&candidate);
  std::stable_sort(by_cost.begin(), by_cost.end(),
                   [](const Candidate* a, const Candidate* b) { return a->cost_us < b->cost_us; });
  sim::Table table({"", "inputs", "outputs", ">cost"});
  PlacedTensors outputs = outputs_of(decision);
  for (const Candidate* candidate : by_cost) {
    bool chosen = candidate->in == decision.wanted && candidate->out == outputs;
    table.add_row({chosen ? "->" : "", text(candidate->in), text(candidate->out),
                   fmt::format("{:.2f} us", candidate->cost_us)});
  }
  std::string out = fmt::format("{}: {} candidates, {} as cheap as the chosen one\n\n{}",
                                asked.call.op->name, decision.candidates, decision.ties,
                                by_cost.empty() ? "" : table.text(screen_width()) + "\n");
  out += fmt::format("chosen   {} -> {}, {:.2f} us by PyTorch's model\n", text(decision.wanted),
                     text(outputs), decision.cost_us);
  if (!decision.corrected.empty()) {
    sim::Facts facts;
    facts.add("PyTorch's defect", std::string(decision.corrected));
    out += facts.text(screen_width());
  }
  std::vector<const TensorSpec*> inputs = flat_inputs(asked.call);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    for (const OpStep& step : moves.steps(*inputs[i], *decision.wanted[i]))
      out += fmt::format("input {}  axis {}\n", i, text(step));
  }
  return out;
}

void run_ops(const OpsOptions& options) {
  if (options.op.empty()) return print(operators_text(options.json));
  Asked call = asked(options);
  TorchMoves moves(call.mesh, options.devices_per_host);
  Decision decision = decide(
      call.call, call.mesh->shape(),
      [&](const TensorSpec& from, const OpPlacements& to) { return moves.cost_us(from, to); },
      {Ties::Torch, true});
  print(options.json ? decision_json(call, decision) : decision_text(call, decision, moves));
}

}  // namespace

void add_ops_command(CLI::App& app) {
  auto options = std::make_shared<OpsOptions>();
  CLI::App& command = add_command(
      app, "ops",
      "operators on sharded tensors: their rules; the candidates and the choice for a call",
      "Example:\n  reshard ops mm --mesh 4 --in 'S(0)' --shape 64,32 --in 'S(0)' --shape 32,48",
      [options] { run_ops(*options); });
  add_optional_argument(command, "OPERATOR", options->op,
                        "ATen name, such as mm or max.dim; if omitted, all are listed");
  OptionGroup call(command, "Call");
  call.add("--mesh", "MESH", options->mesh, "such as 4 or dp=2,tp=4");
  call.add_maybe_empty("--in", "PLACEMENTS", options->in,
                       "placements of a tensor, in the operator's order");
  call.add_maybe_empty("--shape", "SHAPE", options->shapes, "of each --in, such as 8,4");
  call.add_maybe_empty("--dtype", "DTYPE", options->dtypes,
                       "of all, or of each --in (default f32)");
  call.add_maybe_empty("--attr", "NAME=VALUE", options->attributes,
                       "a non-tensor argument, with the value as JSON");
  call.add_count("--devices-per-host", "COUNT", options->devices_per_host, 1, int{kMaxRanks},
                 "devices per host in PyTorch's cost model (default 8)");
  OptionGroup(command, "Output").add_flag("--json", options->json, "print JSON");
}

}  // namespace reshard::tools
