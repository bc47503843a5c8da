// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/recorded.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/errors.h"

namespace reshard::sim {
namespace {

// The line that made an input of unknown sizes; 0 if there is none.
std::int64_t unsized_by(const OperatorLine& line, const HeldOf& held) {
  for (ValueId value : line.flat_in())
    if (value != kNoValue && held(value).unsized_by > 0) return held(value).unsized_by;
  return 0;
}

// An input can have placements that only a call of this trace creates.
OpPlacements expected_placements(const std::string& text, const TensorSpec* like,
                                 const OperatorLine& line, std::string_view field) {
  if (like && reshard::text(like->placements) == text) return like->placements;
  return parse_op_placements(text, line.mesh->axes(), field);
}

std::optional<TensorMeta> meta_of(const OperatorLine& line, std::size_t output,
                                  const HeldOf& held) {
  if (output < line.expect_metas.size() && line.expect_metas[output])
    return line.expect_metas[output];
  if (line.kind == OperatorLine::Kind::Redistribute) return std::nullopt;
  ValueId written = line.written[output];
  if (written == kNoValue || held(written).unsized_by > 0) return std::nullopt;
  return held(written).spec.meta;
}

std::vector<std::optional<OpPlacements>> wanted(const OperatorLine& line, const HeldOf& held) {
  std::vector<std::optional<OpPlacements>> out;
  std::vector<ValueId> inputs = line.flat_in();
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  if (line.expect_in && line.expect_in->size() != inputs.size())
    throw InputError(
        fmt::format("expect: in: expected {} placements, one for each tensor, found {}",
                    inputs.size(), line.expect_in->size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == kNoValue) {
      out.emplace_back(std::nullopt);
      continue;
    }
    const TensorSpec& spec = held(inputs[i]).spec;
    std::string stated = line.expect_in ? (*line.expect_in)[i] : std::string();
    out.emplace_back(stated.empty() ? spec.placements
                                    : expected_placements(stated, &spec, line, "expect: in"));
  }
  return out;
}

// Why the line is taken as recorded; empty if it is decided.
std::string why_recorded(const OperatorLine& line, const HeldOf& held) {
  if (line.without_rule) return "no rule";
  std::int64_t made_by = unsized_by(line, held);
  if (made_by == 0) return {};
  if (line.kind == OperatorLine::Kind::Call && !line.expect_out)
    throw InputError(
        fmt::format("{} needs the sizes of its tensors, but line {}, which is taken as recorded, "
                    "does not state its results: expect has no out_shape and out_dtype",
                    line.call, made_by));
  return fmt::format("sizes unknown: line {} has no out_shape", made_by);
}

Decision recorded_decision(const OperatorLine& line, const HeldOf& held, std::string why) {
  Decision out;
  out.recorded = std::move(why);
  if (line.kind == OperatorLine::Kind::Redistribute) {
    out.wanted = {line.to};
    out.outputs = {TensorSpec{{}, line.to}};
    return out;
  }
  if (line.expect_out->size() < line.out.size())
    throw InputError(
        fmt::format("expect: out: expected {} placements, one for each of out, "
                    "found {}",
                    line.out.size(), line.expect_out->size()));
  out.wanted = wanted(line, held);
  std::vector<ValueId> inputs = line.flat_in();
  const TensorSpec* first =
      inputs.empty() || inputs[0] == kNoValue ? nullptr : &held(inputs[0]).spec;
  for (std::size_t i = 0; i < line.out.size(); ++i) {
    const std::string& stated = (*line.expect_out)[i];
    if (stated.empty()) {
      out.outputs.emplace_back(std::nullopt);
      continue;
    }
    TensorSpec spec{meta_of(line, i, held).value_or(TensorMeta{}),
                    expected_placements(stated, first, line, "expect: out")};
    if (meta_of(line, i, held)) {
      // Refuses layouts that no tensor can have.
      std::vector<Placement> plain;
      for (const OpPlacement& placement : spec.placements) plain.push_back(placement.carried());
      (void)Layout(spec.meta.shape, spec.meta.dtype, line.mesh, std::move(plain));
    }
    out.outputs.emplace_back(std::move(spec));
  }
  return out;
}

}  // namespace

bool is_sized(const OperatorLine& line, std::size_t output, const HeldOf& held) {
  return meta_of(line, output, held).has_value();
}

Decision decision_of(const OperatorLine& line, const HeldOf& held,
                     const std::function<Decision(const OpCall&)>& decide) {
  std::string why = why_recorded(line, held);
  if (!why.empty()) return recorded_decision(line, held, std::move(why));
  if (line.kind != OperatorLine::Kind::Call) return Choices::explicit_one(line, held);
  try {
    return decide(Choices::call_of(line, held));
  } catch (const NotCovered& error) {
    if (!line.expect_out) throw;
    return recorded_decision(line, held, error.what());
  }
}

std::vector<TakenAsRecorded> taken_as_recorded(const std::vector<DispatchedCall>& calls) {
  std::vector<TakenAsRecorded> out;
  for (const DispatchedCall& call : calls) {
    if (call.recorded.empty()) continue;
    std::string name = call.op ? call.op->name : "redistribute";
    auto known = std::find_if(out.begin(), out.end(), [&](const TakenAsRecorded& row) {
      return row.call == name && row.why == call.recorded;
    });
    if (known == out.end()) known = out.insert(out.end(), {name, 0, call.line, call.recorded});
    ++known->count;
  }
  return out;
}

}  // namespace reshard::sim
