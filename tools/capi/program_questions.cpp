// SPDX-License-Identifier: BSD-3-Clause
// The C API: one rank's program, operation by operation.
#include <algorithm>

#include "core/proof/proof.h"
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

void copy_dims(const DimVector& from, std::int64_t* to) { std::copy(from.begin(), from.end(), to); }

// One operation, with everything that its queries need.
struct Operation {
  const reshard_program& handle;
  std::size_t index;
  const Launch& launch;

  Operation(const reshard_program* program, std::int32_t of)
      : handle(given(program, "program")),
        index(checked_index(of, handle.schedule.launches.size(), "operation")),
        launch(handle.schedule.launches[index]) {}

  // Throws InputError if the operation is of another kind.
  template <class Work>
  const Work& work(const char* expected, bool suits = true) const {
    const auto* found = std::get_if<Work>(&launch.work);
    if (found != nullptr && suits) return *found;
    throw InputError(std::string("operation: expected ") + expected + ", found " +
                     std::string(kind_text(handle.plan->steps[launch.step])));
  }
  std::int64_t bytes(const PlacedBox& box) const {
    return element_count(box.extents) * size_bytes(handle.schedule.buffer(box.at.buffer).dtype);
  }
};

std::int32_t kind_of(const LocalWork& work) {
  if (!work.copies.empty()) return RESHARD_COPY;
  return work.fills.empty() ? RESHARD_REDUCE : RESHARD_FILL;
}

std::int32_t kind_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllGather:
      return RESHARD_ALL_GATHER;
    case CollectiveKind::ReduceScatter:
      return RESHARD_REDUCE_SCATTER;
    case CollectiveKind::AllReduce:
      return RESHARD_ALL_REDUCE;
    case CollectiveKind::AllToAll:
      break;
  }
  return RESHARD_ALL_TO_ALL;
}

void describe(const Operation&, const LocalWork& work, reshard_operation& out) {
  out.kind = kind_of(work);
  out.part_count = static_cast<std::int32_t>(work.size());
  if (out.kind != RESHARD_REDUCE) return;
  out.reduce_op = static_cast<std::int32_t>(work.op);
  out.divisor = work.divisor;
}

void describe(const Operation&, const Messages& work, reshard_operation& out) {
  out.kind = RESHARD_EXCHANGE;
  out.part_count = static_cast<std::int32_t>(work.sends.size() + work.receives.size());
}

void describe(const Operation& operation, const NativeCollective& work, reshard_operation& out) {
  const std::vector<std::int32_t>& group = operation.handle.groups[operation.index];
  out.kind = kind_of(work.kind);
  out.group = group.data();
  out.group_size = static_cast<std::int32_t>(group.size());
  out.member = work.member;
  out.input = static_cast<std::int32_t>(work.input.at.buffer);
  out.output = static_cast<std::int32_t>(work.output.at.buffer);
  out.input_bytes = operation.bytes(work.input);
  out.output_bytes = operation.bytes(work.output);
  out.input_dim = work.input_dim;
  out.output_dim = work.output_dim;
  copy_dims(work.input.at.lo, out.input_offset);
  copy_dims(work.input.extents, out.input_extents);
  copy_dims(work.output.at.lo, out.output_offset);
  copy_dims(work.output.extents, out.output_extents);
  if (work.kind == CollectiveKind::AllGather || work.kind == CollectiveKind::AllToAll) return;
  out.reduce_op = static_cast<std::int32_t>(work.op);
  out.divisor = work.divisor;
}

// Numbered with sends first, then receives.
const Messages::PeerMessage& message_of(const Messages& work, std::int32_t message) {
  std::size_t at = checked_index(message, work.sends.size() + work.receives.size(), "message");
  return at < work.sends.size() ? work.sends[at] : work.receives[at - work.sends.size()];
}

const LocalWork::Fold& fold_of(const LocalWork& work, std::int32_t part) {
  return work.folds[checked_index(part, work.folds.size(), "part")];
}

bool is(const Operation& operation, std::int32_t kind) {
  const auto* local = std::get_if<LocalWork>(&operation.launch.work);
  return local != nullptr && kind_of(*local) == kind;
}

reshard_box box_of(const Place& at, const DimVector& extents) {
  reshard_box out{};
  out.buffer = static_cast<std::int32_t>(at.buffer);
  copy_dims(at.lo, out.offset);
  copy_dims(extents, out.extents);
  return out;
}

}  // namespace

reshard_program::reshard_program(std::shared_ptr<const Plan> of, Slot slot, std::int64_t alignment)
    : plan(std::move(of)),
      schedule(std::move(rank_schedules(*plan, std::span(&slot, 1), {}).front())),
      messages(std::move(
          checked_schedules(*plan, std::span(&slot, 1), no_native_collectives()).front())) {
  // An element at an aligned offset must itself be aligned.
  for (const LocalBuffer& buffer : schedule.buffers)
    alignment = std::max(alignment, size_bytes(buffer.dtype));
  temporaries = lay_out_temporaries(temporary_lives(schedule), alignment);
  std::vector<BufferLife> lives = temporary_lives(messages);
  std::fill_n(lives.begin(), plan->buffers.size(), BufferLife());
  scratch = lay_out_temporaries(lives, kDefaultAlignment);
  for (const Launch& launch : schedule.launches)
    for (std::vector<std::int32_t>& group = groups.emplace_back(); Slot member : launch.group)
      group.push_back(to_int(plan->rank_of(member)));
}

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
    *program = new reshard_program(from.plan, slot, alignment);
  });
}

void reshard_program_free(reshard_program* program) { delete program; }

int32_t reshard_program_get_facts(const reshard_program* program, reshard_program_facts* facts) {
  return guarded([&] {
    const reshard_program& handle = given(program, "program");
    reshard_program_facts out{};
    out.rank = to_int(handle.plan->rank_of(handle.schedule.slot));
    out.operation_count = static_cast<std::int32_t>(handle.schedule.launches.size());
    out.buffer_count = static_cast<std::int32_t>(handle.schedule.buffers.size());
    out.dims = handle.plan->dims();
    out.element_bytes = element_bytes_of(*handle.plan);
    out.arena_bytes = handle.temporaries.total_bytes;
    give(out, facts, "facts");
  });
}

int32_t reshard_program_get_buffer(const reshard_program* program, int32_t buffer,
                                   reshard_buffer* result) {
  return guarded([&] {
    const reshard_program& handle = given(program, "program");
    reshard_buffer out = buffer_of(*handle.plan, handle.schedule.slot, buffer);
    out.arena_offset = handle.temporaries.offset[to_index(buffer)];
    give(out, result, "result");
  });
}

int32_t reshard_program_get_operation(const reshard_program* program, int32_t operation,
                                      reshard_operation* result) {
  return guarded([&] {
    Operation found(program, operation);
    reshard_operation out{};
    out.step = static_cast<std::int32_t>(found.launch.step);
    out.after_count = static_cast<std::int32_t>(found.launch.after.size());
    out.after = found.launch.after.data();
    out.divisor = 1;
    out.input = out.output = -1;
    std::visit([&](const auto& work) { describe(found, work, out); }, found.launch.work);
    give(out, result, "result");
  });
}

int32_t reshard_program_get_message(const reshard_program* program, int32_t operation,
                                    int32_t message, reshard_message* result) {
  return guarded([&] {
    Operation found(program, operation);
    const auto& work = found.work<Messages>("an exchange");
    const Messages::PeerMessage& asked = message_of(work, message);
    reshard_message out{};
    out.receives = to_index(message) < work.sends.size() ? 0 : 1;
    out.peer = to_int(found.handle.plan->rank_of(asked.peer));
    out.move_count = static_cast<std::int32_t>(asked.moves.size());
    for (const PlacedMove& move : asked.moves) out.bytes += found.bytes({move.from, move.extents});
    give(out, result, "result");
  });
}

int32_t reshard_program_get_move(const reshard_program* program, int32_t operation, int32_t message,
                                 int32_t move, reshard_move* result) {
  return guarded([&] {
    Operation found(program, operation);
    const std::vector<PlacedMove>* moves = nullptr;
    if (is(found, RESHARD_COPY)) {
      checked_index(message, 1, "message");
      moves = &std::get<LocalWork>(found.launch.work).copies;
    } else {
      moves = &message_of(found.work<Messages>("a copy or an exchange"), message).moves;
    }
    const PlacedMove& asked = (*moves)[checked_index(move, moves->size(), "move")];
    reshard_move out{};
    out.source = static_cast<std::int32_t>(asked.from.buffer);
    out.destination = static_cast<std::int32_t>(asked.to.buffer);
    copy_dims(asked.from.lo, out.source_offset);
    copy_dims(asked.to.lo, out.destination_offset);
    copy_dims(asked.extents, out.extents);
    give(out, result, "result");
  });
}

int32_t reshard_program_get_box(const reshard_program* program, int32_t operation, int32_t part,
                                reshard_box* result) {
  return guarded([&] {
    Operation found(program, operation);
    const auto& work = found.work<LocalWork>("a fill or a reduce", !is(found, RESHARD_COPY));
    reshard_box out{};
    if (is(found, RESHARD_FILL)) {
      const PlacedBox& fill = work.fills[checked_index(part, work.fills.size(), "part")];
      out = box_of(fill.at, fill.extents);
    } else {
      const LocalWork::Fold& fold = fold_of(work, part);
      out = box_of(fold.to, fold.extents);
      out.operand_count = static_cast<std::int32_t>(fold.operands.size());
    }
    give(out, result, "result");
  });
}

int32_t reshard_program_get_operand(const reshard_program* program, int32_t operation, int32_t part,
                                    int32_t operand, reshard_box* result) {
  return guarded([&] {
    Operation found(program, operation);
    const LocalWork::Fold& fold =
        fold_of(found.work<LocalWork>("a reduce", is(found, RESHARD_REDUCE)), part);
    give(box_of(fold.operands[checked_index(operand, fold.operands.size(), "operand")],
                fold.extents),
         result, "result");
  });
}
}
