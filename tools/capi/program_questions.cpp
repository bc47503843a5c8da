// SPDX-License-Identifier: BSD-3-Clause
// The C API: one rank's program, operation by operation.
#include <algorithm>

#include "core/schedule/transfers.h"
#include "tools/capi/guard.h"
#include "tools/capi/handles.h"

using namespace reshard;
using namespace reshard::capi;

namespace {

static_assert(RESHARD_SUM == static_cast<int>(ReduceOp::Sum) &&
              RESHARD_MIN == static_cast<int>(ReduceOp::Min) &&
              RESHARD_MAX == static_cast<int>(ReduceOp::Max) &&
              RESHARD_PRODUCT == static_cast<int>(ReduceOp::Product) &&
              RESHARD_BAND == static_cast<int>(ReduceOp::Band) &&
              RESHARD_BOR == static_cast<int>(ReduceOp::Bor) &&
              RESHARD_BXOR == static_cast<int>(ReduceOp::Bxor));
static_assert(RESHARD_MAX_DIMS == kMaxDims);

constexpr std::int64_t kDefaultAlignment = 256;

// One operation with all that its queries need.
struct Operation {
  const reshard_program& handle;
  const RankStep& part;
  const Step& step;

  Operation(const reshard_program* program, std::int32_t index)
      : handle(given(program, "program")),
        part(handle.program.steps[checked_index(index, handle.program.steps.size(), "operation")]),
        step(handle.plan->steps[to_index(part.step)]) {}

  // Throws where the operation is of another kind.
  template <class Body>
  const Body& body(const char* expected) const {
    if (const auto* found = std::get_if<Body>(&step.body)) return *found;
    throw InputError(std::string("operation: expected ") + expected + ", found " +
                     std::string(kind_text(step)));
  }
};

std::int32_t kind_of(const Step& step) {
  struct Kind {
    std::int32_t operator()(const CopyStep&) const { return RESHARD_COPY; }
    std::int32_t operator()(const FillStep&) const { return RESHARD_FILL; }
    std::int32_t operator()(const ExchangeStep&) const { return RESHARD_EXCHANGE; }
    std::int32_t operator()(const ReduceStep&) const { return RESHARD_REDUCE; }
    std::int32_t operator()(const CollectiveStep& collective) const {
      switch (collective.kind) {
        case CollectiveKind::AllGather:
          return RESHARD_ALL_GATHER;
        case CollectiveKind::ReduceScatter:
          return RESHARD_REDUCE_SCATTER;
        case CollectiveKind::AllReduce:
          return RESHARD_ALL_REDUCE;
        case CollectiveKind::AllToAll:
          return RESHARD_ALL_TO_ALL;
      }
      return RESHARD_ALL_TO_ALL;
    }
  };
  return std::visit(Kind{}, step.body);
}

std::int32_t part_count_of(const Operation& operation) {
  if (const auto* copy = std::get_if<CopyStep>(&operation.step.body))
    return static_cast<std::int32_t>(copy->parts[operation.part.first_part].moves.count);
  if (std::holds_alternative<ExchangeStep>(operation.step.body))
    return static_cast<std::int32_t>(operation.part.sends.size() + operation.part.receives.size());
  return static_cast<std::int32_t>(operation.part.part_count);
}

void fill_collective(const Operation& operation, const CollectiveStep& step, std::size_t index,
                     reshard_operation& out) {
  const std::vector<std::int32_t>& group = operation.handle.groups[index];
  Slot slot = operation.handle.program.slot;
  std::int64_t width = size_bytes(operation.handle.plan->request().dtype());
  out.group = group.data();
  out.group_size = step.group_size;
  out.member = operation.part.member;
  out.input = static_cast<std::int32_t>(step.input);
  out.output = static_cast<std::int32_t>(step.output);
  out.input_bytes = operation.handle.plan->buffer(step.input).elements(slot) * width;
  out.output_bytes = operation.handle.plan->buffer(step.output).elements(slot) * width;
  if (step.kind == CollectiveKind::AllGather || step.kind == CollectiveKind::AllToAll) return;
  out.reduce_op = static_cast<std::int32_t>(step.op);
  out.divisor = step.divisor;
}

// Sends first, then receives.
const ExchangeStep::Message& message_of(const Operation& operation, const ExchangeStep& step,
                                        std::int32_t message) {
  const RankStep& part = operation.part;
  std::size_t at = checked_index(message, part.sends.size() + part.receives.size(), "message");
  return step
      .messages[at < part.sends.size() ? part.sends[at] : part.receives[at - part.sends.size()]];
}

template <class Coordinates>
void copy_dims(const Coordinates& from, std::int64_t* to) {
  std::copy(from.begin(), from.end(), to);
}

}  // namespace

extern "C" {

int32_t reshard_program_create(const reshard_plan* plan, int32_t rank, int64_t alignment,
                               reshard_program** program) {
  return guarded([&] {
    const reshard_plan& from = given(plan, "plan");
    given(program, "program");
    Slot slot = slot_of(*from.plan, rank);
    if (alignment == 0) alignment = kDefaultAlignment;
    if (alignment < 0 || (alignment & (alignment - 1)) != 0 || alignment > (std::int64_t{1} << 30))
      throw InputError("alignment: expected a power of two up to 2^30, or 0, found " +
                       std::to_string(alignment));
    auto handle = std::make_unique<reshard_program>();
    handle->plan = from.plan;
    handle->program = rank_programs(*from.plan, std::span(&slot, 1)).front();
    // An element at an aligned offset must be aligned itself.
    handle->temporaries =
        lay_out_temporaries(*from.plan, lives_of(*from.plan), slot,
                            std::max(alignment, size_bytes(from.plan->request().dtype())));
    for (const RankStep& step : handle->program.steps) {
      std::vector<std::int32_t>& group = handle->groups.emplace_back();
      const auto* collective =
          std::get_if<CollectiveStep>(&from.plan->steps[to_index(step.step)].body);
      if (collective == nullptr) continue;
      for (Slot member : collective->group(static_cast<std::size_t>(step.group)))
        group.push_back(to_int(from.plan->ranks[static_cast<std::size_t>(member)]));
    }
    *program = handle.release();
  });
}

void reshard_program_free(reshard_program* program) { delete program; }

int32_t reshard_program_get_facts(const reshard_program* program, reshard_program_facts* facts) {
  return guarded([&] {
    const reshard_program& handle = given(program, "program");
    reshard_program_facts out{};
    out.rank = to_int(handle.plan->ranks[static_cast<std::size_t>(handle.program.slot)]);
    out.operation_count = static_cast<std::int32_t>(handle.program.steps.size());
    out.buffer_count = static_cast<std::int32_t>(handle.plan->buffers.size());
    out.dims = handle.plan->dims();
    out.element_bytes = static_cast<std::int32_t>(size_bytes(handle.plan->request().dtype()));
    out.arena_bytes = handle.temporaries.total_bytes;
    give(out, facts, "facts");
  });
}

int32_t reshard_program_get_buffer(const reshard_program* program, int32_t buffer,
                                   reshard_buffer* result) {
  return guarded([&] {
    const reshard_program& handle = given(program, "program");
    reshard_buffer out = buffer_of(*handle.plan, handle.program.slot, buffer);
    out.arena_offset = handle.temporaries.offset[static_cast<std::size_t>(buffer)];
    give(out, result, "result");
  });
}

int32_t reshard_program_get_operation(const reshard_program* program, int32_t operation,
                                      reshard_operation* result) {
  return guarded([&] {
    Operation found(program, operation);
    reshard_operation out{};
    out.kind = kind_of(found.step);
    out.step = static_cast<std::int32_t>(found.part.step);
    out.part_count = part_count_of(found);
    out.after_count = static_cast<std::int32_t>(found.part.after.size());
    out.after = found.part.after.data();
    out.divisor = 1;
    out.input = out.output = -1;
    if (const auto* reduce = std::get_if<ReduceStep>(&found.step.body)) {
      out.reduce_op = static_cast<std::int32_t>(reduce->op);
      out.divisor = reduce->divisor;
    } else if (const auto* collective = std::get_if<CollectiveStep>(&found.step.body)) {
      fill_collective(found, *collective, static_cast<std::size_t>(operation), out);
    }
    give(out, result, "result");
  });
}

int32_t reshard_program_get_message(const reshard_program* program, int32_t operation,
                                    int32_t message, reshard_message* result) {
  return guarded([&] {
    Operation found(program, operation);
    const auto& step = found.body<ExchangeStep>("an exchange");
    const ExchangeStep::Message& asked = message_of(found, step, message);
    bool receives = asked.destination == found.handle.program.slot;
    reshard_message out{};
    out.receives = receives ? 1 : 0;
    out.peer =
        to_int(found.handle.plan
                   ->ranks[static_cast<std::size_t>(receives ? asked.source : asked.destination)]);
    out.move_count = static_cast<std::int32_t>(asked.moves.count);
    out.bytes = message_bytes(*found.handle.plan, step, asked);
    give(out, result, "result");
  });
}

int32_t reshard_program_get_move(const reshard_program* program, int32_t operation, int32_t message,
                                 int32_t move, reshard_move* result) {
  return guarded([&] {
    Operation found(program, operation);
    Move asked;
    if (const auto* copy = std::get_if<CopyStep>(&found.step.body)) {
      checked_index(message, 1, "message");
      MoveRange moves = copy->parts[found.part.first_part].moves;
      asked = copy->moves[moves.first + checked_index(move, moves.count, "move")];
    } else {
      const auto& step = found.body<ExchangeStep>("a copy or an exchange");
      MoveRange moves = message_of(found, step, message).moves;
      asked = step.moves[moves.first + checked_index(move, moves.count, "move")];
    }
    reshard_move out{};
    out.source = static_cast<std::int32_t>(asked.source);
    out.destination = static_cast<std::int32_t>(asked.destination);
    copy_dims(asked.source_lo, out.source_offset);
    copy_dims(asked.destination_lo, out.destination_offset);
    copy_dims(asked.extents, out.extents);
    give(out, result, "result");
  });
}

int32_t reshard_program_get_box(const reshard_program* program, int32_t operation, int32_t part,
                                reshard_box* result) {
  return guarded([&] {
    Operation found(program, operation);
    reshard_box out{};
    if (const auto* fill = std::get_if<FillStep>(&found.step.body)) {
      const FillStep::Part& asked =
          fill->parts[found.part.first_part + checked_index(part, found.part.part_count, "part")];
      out.buffer = static_cast<std::int32_t>(asked.buffer);
      copy_dims(asked.box.lo, out.offset);
      copy_dims(asked.box.extents(), out.extents);
    } else {
      const auto& step = found.body<ReduceStep>("a fill or a reduce");
      const ReduceStep::Part& asked =
          step.parts[found.part.first_part + checked_index(part, found.part.part_count, "part")];
      out.buffer = static_cast<std::int32_t>(asked.destination);
      out.operand_count = static_cast<std::int32_t>(asked.operand_count);
      copy_dims(asked.destination_lo, out.offset);
      copy_dims(asked.extents, out.extents);
    }
    give(out, result, "result");
  });
}

int32_t reshard_program_get_operand(const reshard_program* program, int32_t operation, int32_t part,
                                    int32_t operand, reshard_box* result) {
  return guarded([&] {
    Operation found(program, operation);
    const auto& step = found.body<ReduceStep>("a reduce");
    const ReduceStep::Part& of =
        step.parts[found.part.first_part + checked_index(part, found.part.part_count, "part")];
    const ReduceStep::Operand& asked =
        step.operands[of.first_operand + checked_index(operand, of.operand_count, "operand")];
    reshard_box out{};
    out.buffer = static_cast<std::int32_t>(asked.buffer);
    copy_dims(asked.lo, out.offset);
    copy_dims(of.extents, out.extents);
    give(out, result, "result");
  });
}
}
