// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/sharing/sharing.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/errors.h"
#include "core/ops/rules/rules.h"
#include "core/ops/views/view_map.h"

namespace reshard::sim {
namespace {

bool is_random_in_place(std::string_view base) {
  constexpr std::string_view kNames[]{"normal_",    "uniform_",    "bernoulli_", "exponential_",
                                      "geometric_", "log_normal_", "cauchy_",    "random_"};
  return std::find(std::begin(kNames), std::end(kNames), base) != std::end(kNames);
}

// Whether it is a batch norm that updates its running statistics.
bool updates_statistics(const Operator& op, const OpAttributes& attributes) {
  if (op.name.starts_with("_batch_norm_with_update")) return true;
  return (op.name.starts_with("native_batch_norm") ||
          op.name.starts_with("_native_batch_norm_legit")) &&
         op.name.find("backward") == std::string::npos && attributes.boolean("training", false);
}

// Whether the argument of that name is given.
bool is_given(const Operator& op, const OperatorLine& line, std::string_view name) {
  for (std::size_t i = 0; i < std::min(op.tensors.size(), line.in.size()); ++i)
    if (op.tensors[i].name == name)
      return !line.in[i].values.empty() && line.in[i].values[0] != kNoValue;
  return false;
}

bool is_written(const Operator& op, const OperatorLine& line, std::size_t argument) {
  const OpAttributes& attributes = line.attributes;
  std::string_view name = argument < op.tensors.size() ? op.tensors[argument].name : "";
  if (op.writes_out && argument >= op.tensors.size()) return true;
  if (updates_statistics(op, attributes) && name.starts_with("running_")) return true;
  if (!op.in_place || is_view(op.name) || op.name == "detach_") return false;
  if (op.name.starts_with("_fused_adam"))
    return name == "self" || name.starts_with("exp_avg") || name == "max_exp_avg_sqs" ||
           (name == "grads" && is_given(op, line, "grad_scale"));
  return argument == 0 || name == "found_inf";
}

class Following {
 public:
  Following(const std::string& file, const std::vector<DispatchedCall>& calls)
      : file_(file), calls_(calls) {}

  Sharing run(const std::vector<std::shared_ptr<const OperatorLine>>& tensors) {
    for (const auto& line : tensors) {
      MemoryId memory = own_memory();
      of(memory).declared = true;
      place(line->out[0], {memory, memory, dense_view(line->spec.meta)});
    }
    for (const DispatchedCall& call : calls_) {
      call_ = &call;
      if (call.op)
        follow();
      else
        redistribute();
    }
    for (std::size_t i = 0; i < memories_.size(); ++i)
      for (std::size_t unseen : memories_[i].unseen) end(unseen, static_cast<MemoryId>(i));
    return std::move(out_);
  }

 private:
  struct Copied {
    const DispatchedCall* by;
    std::string of;
    const DispatchedMove* move;
  };
  struct Write {
    const DispatchedCall* by;
    std::string into;
    MemoryId memory;
    MemoryView view;
  };
  struct Memory {
    MemoryId whole;
    std::vector<MemoryId> family = {};  // for a whole tensor's memory: itself and all copies
    bool declared = false;
    MemoryId from = -1;  // the memory that it is a copy of
    std::optional<Copied> copied = {};
    std::vector<std::size_t> unseen = {};  // writes to others of the family
  };

  MemoryId own_memory() {
    auto id = static_cast<MemoryId>(memories_.size());
    memories_.push_back({id, {id}});
    return id;
  }
  Memory& of(MemoryId memory) { return memories_[to_index(memory)]; }

  void place(ValueId value, MemoryPlace place) {
    if (value == kNoValue) return;
    if (to_index(value) >= out_.places.size()) out_.places.resize(to_index(value) + 1);
    out_.places[to_index(value)] = std::move(place);
  }
  const MemoryPlace& place_of(ValueId value) const {
    RESHARD_CHECK(to_index(value) < out_.places.size() && out_.places[to_index(value)],
                  "a value that no line has produced");
    return *out_.places[to_index(value)];
  }

  const DispatchedMove* move_of(std::size_t input) const {
    for (const DispatchedMove& move : call_->moves)
      if (to_index(move.input) == input) return &move;
    return nullptr;
  }

  // ---- one line

  void redistribute() {
    const OperatorLine& op_line = *call_->op_line;
    ValueId value = op_line.in[0].values[0];
    read(value, op_line.in[0].names[0]);
    const DispatchedMove& move = call_->moves.front();
    MemoryPlace there = place_of(value);
    if (move.from != move.to) {
      MemoryId memory = own_memory();
      there = {memory, memory, dense_view(call_->in[0]->meta)};
    }
    place(op_line.out[0], std::move(there));
  }

  void follow() {
    const OperatorLine& op_line = *call_->op_line;
    std::vector<ValueId> inputs = op_line.flat_in();
    std::vector<std::string> names = op_line.flat_names();
    std::vector<std::size_t> written = written_inputs(*call_->op, op_line);
    std::optional<std::vector<MemoryView>> views = views_made(inputs);
    auto is_written = [&](std::size_t input) {
      return std::find(written.begin(), written.end(), input) != written.end();
    };
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] != kNoValue && !(views && i == 0) && !(overwrites(*call_->op) && is_written(i)))
        read(inputs[i], names[i]);
    for (std::size_t i : written)
      if (inputs[i] != kNoValue) write(inputs[i], names[i], move_of(i));
    if (views) return give_views(inputs[0], names[0], *views);
    give_outputs(inputs, outputs_written(op_line, written));
  }

  std::optional<std::vector<MemoryView>> views_made(const std::vector<ValueId>& inputs) const {
    if (inputs.empty() || inputs[0] == kNoValue || !call_->in[0] || !call_->sized)
      return std::nullopt;
    std::vector<std::optional<TensorMeta>> metas;
    for (const auto& output : call_->decision.outputs)
      metas.push_back(output ? std::optional(output->meta) : std::nullopt);
    return views_of(call_->op->name, call_->in[0]->meta, place_of(inputs[0]).view,
                    call_->op_line->attributes, metas);
  }

  void give_views(ValueId value, const std::string& name, const std::vector<MemoryView>& views) {
    MemoryPlace from = place_of(value);
    if (const DispatchedMove* move = move_of(0)) from.memory = copy(from, name, *move);
    for (std::size_t i = 0; i < call_->op_line->out.size() && i < views.size(); ++i)
      place(call_->op_line->out[i], {from.whole, from.memory, views[i]});
  }

  void give_outputs(const std::vector<ValueId>& inputs,
                    const std::vector<std::optional<std::size_t>>& same) {
    const OperatorLine& op_line = *call_->op_line;
    for (std::size_t i = 0; i < op_line.out.size(); ++i) {
      if (op_line.out[i] == kNoValue) continue;
      if (same[i]) {
        place(op_line.out[i], place_of(inputs[*same[i]]));
        continue;
      }
      // An operator that only works on its inputs returns them.
      const auto& outputs = call_->decision.outputs.empty() ? call_->in : call_->decision.outputs;
      if (i >= outputs.size() || !outputs[i]) continue;
      MemoryId memory = own_memory();
      place(op_line.out[i], {memory, memory, made_view(outputs[i]->meta, inputs)});
    }
  }

  // Pointwise operators keep the dim order of their first tensor.
  MemoryView made_view(const TensorMeta& meta, const std::vector<ValueId>& inputs) const {
    const Rule* rule = call_->op->rule;
    bool keeps = rule && (rule->name.starts_with("pointwise") || rule->name == "keep" ||
                          rule->name == "like" || rule->name == "to_copy");
    if (!keeps || inputs.empty() || inputs[0] == kNoValue) return dense_view(meta);
    return dense_view_like(meta, place_of(inputs[0]).view);
  }

  // ---- memory

  MemoryId copy(const MemoryPlace& from, const std::string& name, const DispatchedMove& move) {
    MemoryId id = own_memory();
    of(from.whole).family.push_back(id);
    of(id) = {
        from.whole, {}, false, from.memory, Copied{call_, name, &move}, of(from.memory).unseen};
    return id;
  }

  // Applies to whole tensors too.
  void refuse_overlapping(const MemoryView& view, const std::string& name) const {
    if (overwrites(*call_->op)) return;
    for (int d = 0; d < view.shape.size(); ++d)
      if (view.shape[d] > 1 && view.strides[to_index(d)] == 0)
        throw InputError(
            fmt::format("{}:{}: {}: several elements of {} share a memory location: clone it first",
                        file_, call_->line, call_->op->name, name));
  }

  void write(ValueId value, const std::string& name, const DispatchedMove* move) {
    MemoryPlace into = place_of(value);
    refuse_overlapping(into.view, name);
    MemoryId named = into.memory;
    if (move) into.memory = copy(into, name, *move);
    std::size_t number = writes_.size();
    writes_.push_back({call_, name, into.memory, into.view});
    for (MemoryId other : of(into.whole).family)
      if (other != into.memory) of(other).unseen.push_back(number);
    if (overwrites(*call_->op))
      std::erase_if(of(into.memory).unseen,
                    [&](std::size_t unseen) { return covers(into.view, writes_[unseen].view); });
    // The named tensor does not get the write.
    if (move) lose(number, named).stays = true;
  }

  void read(ValueId value, const std::string& name) {
    const MemoryPlace& at = place_of(value);
    for (std::size_t unseen : of(at.memory).unseen) {
      if (!overlap(at.view, writes_[unseen].view)) continue;
      LostWrite& lost = lose(unseen, at.memory);
      if (lost.read_line) continue;
      lost.read_line = call_->line;
      lost.read_by = call_->op ? call_->op->name : "redistribute";
      lost.read = name;
    }
  }

  // A write to a copy of the memory that nothing has overwritten.
  void end(std::size_t number, MemoryId memory) {
    if (!is_copy_of(writes_[number].memory, memory)) return;
    LostWrite& lost = lose(number, memory);
    lost.stays = lost.stays || of(memory).declared;
  }

  bool is_copy_of(MemoryId memory, MemoryId from) {
    for (; memory >= 0; memory = of(memory).from)
      if (memory == from) return true;
    return false;
  }

  // The entry for a write and the copy by which it is lost.
  LostWrite& lose(std::size_t number, MemoryId reader) {
    const Write& write = writes_[number];
    bool into_copy = !is_copy_of(reader, write.memory);
    const Copied& copied = *of(into_copy ? write.memory : reader).copied;
    auto [known, is_new] =
        known_.try_emplace({number, into_copy ? write.memory : reader}, out_.lost.size());
    if (is_new)
      out_.lost.push_back({write.by->line, copied.by->line, write.by->op->name, write.into,
                           copied.by->op->name, copied.of, copied.move->from, copied.move->to,
                           into_copy});
    return out_.lost[known->second];
  }

  const std::string& file_;
  const std::vector<DispatchedCall>& calls_;
  const DispatchedCall* call_ = nullptr;
  std::vector<Memory> memories_;
  std::vector<Write> writes_;
  std::map<std::pair<std::size_t, MemoryId>, std::size_t> known_;  // index in out_.lost
  Sharing out_;
};

// Groups of values that may share memory, judged by operators' names.
class Groups {
 public:
  void begin(ValueId value) { join(value, value); }
  void join(ValueId value, ValueId with) {
    if (value == kNoValue) return;
    if (to_index(value) >= first_.size()) {
      first_.resize(to_index(value) + 1, kNoValue);
      members_.resize(to_index(value) + 1);
    }
    ValueId first = value == with ? value : first_[to_index(with)];
    first_[to_index(value)] = first;
    members_[to_index(first)].push_back(value);
  }
  const std::vector<ValueId>& of(ValueId value) const {
    return members_[to_index(first_[to_index(value)])];
  }

 private:
  std::vector<ValueId> first_;                 // by value
  std::vector<std::vector<ValueId>> members_;  // by the first of them
};

void join_outputs(const OperatorLine& op_line, const Operator* op, Groups& groups) {
  std::vector<ValueId> inputs = op_line.flat_in();
  std::vector<std::optional<std::size_t>> same(op_line.out.size());
  if (op) same = outputs_written(op_line, written_inputs(*op, op_line));
  bool views = (!op || may_share_memory(op->name)) && inputs[0] != kNoValue;
  for (std::size_t i = 0; i < op_line.out.size(); ++i) {
    if (!same[i] && views) same[i] = 0;
    bool shares = same[i] && inputs[*same[i]] != kNoValue;
    groups.join(op_line.out[i], shares ? inputs[*same[i]] : op_line.out[i]);
  }
}

}  // namespace

std::vector<std::vector<ValueId>> stale_after(
    const std::vector<std::shared_ptr<const OperatorLine>>& tensors,
    const std::vector<std::shared_ptr<const OperatorLine>>& lines) {
  std::map<ValueId, std::size_t> last_use;
  for (std::size_t i = 0; i < lines.size(); ++i)
    for (ValueId value : lines[i]->flat_in()) last_use[value] = i;
  Groups groups;
  for (const auto& line : tensors) groups.begin(line->out[0]);
  std::vector<std::vector<ValueId>> out(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const OperatorLine& op_line = *lines[i];
    bool calls = op_line.kind == OperatorLine::Kind::Call;
    const Operator* op = calls ? &op_line.op() : nullptr;
    std::vector<ValueId> inputs = op_line.flat_in();
    if (op)
      for (std::size_t input : written_inputs(*op, op_line)) {
        if (inputs[input] == kNoValue) continue;
        for (ValueId value : groups.of(inputs[input]))
          if (auto last = last_use.find(value); last != last_use.end() && last->second > i)
            out[i].push_back(value);
      }
    join_outputs(op_line, op, groups);
  }
  return out;
}

std::vector<std::size_t> written_inputs(const Operator& op, const OperatorLine& line) {
  std::vector<std::size_t> out;
  std::size_t flat = 0;
  for (std::size_t i = 0; i < line.in.size(); ++i)
    for (std::size_t k = 0; k < line.in[i].values.size(); ++k, ++flat)
      if (is_written(op, line, i)) out.push_back(flat);
  return out;
}

std::vector<std::optional<std::size_t>> outputs_written(const OperatorLine& line,
                                                        const std::vector<std::size_t>& written) {
  const Operator& op = line.op();
  std::vector<std::string> names = line.flat_names();
  std::vector<std::optional<std::size_t>> out(line.out.size());
  for (std::size_t i = 0; i < line.out.size(); ++i) {
    if (!op.in_place && !op.writes_out) continue;
    if (i < written.size()) out[i] = written[i];
    for (std::size_t input : written)
      if (names[input] == line.names[i]) out[i] = input;
  }
  return out;
}

bool overwrites(const Operator& op) {
  std::string_view base = std::string_view(op.name).substr(0, op.name.find('.'));
  return op.writes_out || base == "zero_" || base == "fill_" || base == "copy_" ||
         base == "_foreach_zero_" || base == "_foreach_copy_" || is_random_in_place(base);
}

Sharing sharing_of(const std::string& file,
                   const std::vector<std::shared_ptr<const OperatorLine>>& tensors,
                   const std::vector<DispatchedCall>& calls) {
  return Following(file, calls).run(tensors);
}

std::string text(const LostWrite& lost) {
  std::string moved = fmt::format("{} to {}", text(lost.from), text(lost.to));
  if (lost.line == lost.copied_line)
    return fmt::format(
        "{} writes into a copy of {}, redistributed from {}: the write is lost and {} keeps its "
        "old value",
        lost.call, lost.into, moved, lost.into);
  std::string out =
      lost.into_copy
          ? fmt::format(
                "{} writes into {}, which {} in line {} made from a copy of {}, redistributed from "
                "{}: the write is lost and {} keeps its old value",
                lost.call, lost.into, lost.copied_by, lost.copied_line, lost.of, moved, lost.of)
          : fmt::format(
                "{} writes to {}, of which {} in line {} had made a copy, redistributed from {}: "
                "the write is not in the copy",
                lost.call, lost.into, lost.copied_by, lost.copied_line, moved);
  if (lost.read_line)
    out += fmt::format(", and {} in line {} reads {}", lost.read_by, *lost.read_line, lost.read);
  return out;
}

}  // namespace reshard::sim
