// SPDX-License-Identifier: BSD-3-Clause
// Collectives that MPI itself runs, nonblocking, on the group's communicator.
//
// All-gather and all-to-all move bytes. A reduction is left to MPI only if any order and
// association of its operands give the same bits: integers, without a division. Sums and products
// are passed as unsigned integers, which wrap around as ours do, so that overflow is defined. Only
// 32 and 64 bits: vectorized sums of 8 and 16 bits saturate in Open MPI 4.1, and MPICH 4.0 compares
// unsigned bytes as signed in min and max.
#include "backends/mpi/prepared.h"
#include "core/base/errors.h"
#include "core/bytes/box_copy.h"

namespace reshard::backends::mpi {
namespace {

MPI_Datatype integer_type(DType dtype, bool as_unsigned) {
  if (dtype == DType::I64) return as_unsigned ? MPI_UINT64_T : MPI_INT64_T;
  RESHARD_CHECK(dtype == DType::I32, "dtype of a reduction by MPI");
  return as_unsigned ? MPI_UINT32_T : MPI_INT32_T;
}

MPI_Op mpi_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum:
      return MPI_SUM;
    case ReduceOp::Product:
      return MPI_PROD;
    case ReduceOp::Min:
      return MPI_MIN;
    case ReduceOp::Max:
      return MPI_MAX;
    case ReduceOp::Band:
      return MPI_BAND;
    case ReduceOp::Bor:
      return MPI_BOR;
    default:
      RESHARD_CHECK(op == ReduceOp::Bxor, "operator of a reduction by MPI");
      return MPI_BXOR;
  }
}

class NativeLaunch : public PreparedLaunch {
 public:
  NativeLaunch(const LaunchContext& context, const NativeCollective& work)
      : kind_(work.kind),
        comm_(context.comm),
        rank_(context.world.rank),
        input_(begin(context, work.input)),
        output_(begin(context, work.output)),
        count_(count_of(work, static_cast<std::int32_t>(context.launch.group.size()))) {
    for (Slot slot : context.launch.group) group_.push_back(context.process(slot));
    DType dtype = context.memory.schedule().buffer(work.input.at.buffer).dtype;
    if (kind_ == CollectiveKind::AllGather || kind_ == CollectiveKind::AllToAll) {
      count_ *= size_bytes(dtype);
    } else {
      // Only min and max depend on the sign.
      type_ = integer_type(dtype, work.op != ReduceOp::Min && work.op != ReduceOp::Max);
      op_ = mpi_op(work.op);
    }
  }

  void issue(Traffic& traffic) override {
    MPI_Request request = MPI_REQUEST_NULL;
    int count = static_cast<int>(count_);
    MPI_Comm comm = comm_->get();
    switch (kind_) {
      case CollectiveKind::AllGather:
        RESHARD_MPI_CALL(rank_, MPI_Iallgather(input_, count, MPI_BYTE, output_, count, MPI_BYTE,
                                               comm, &request));
        break;
      case CollectiveKind::AllToAll:
        RESHARD_MPI_CALL(rank_, MPI_Ialltoall(input_, count, MPI_BYTE, output_, count, MPI_BYTE,
                                              comm, &request));
        break;
      case CollectiveKind::ReduceScatter:
        RESHARD_MPI_CALL(
            rank_, MPI_Ireduce_scatter_block(input_, output_, count, type_, op_, comm, &request));
        break;
      case CollectiveKind::AllReduce:
        RESHARD_MPI_CALL(rank_, MPI_Iallreduce(input_, output_, count, type_, op_, comm, &request));
        break;
    }
    traffic.track(request, group_, pending);
  }

 private:
  static std::byte* begin(const LaunchContext& context, const PlacedBox& box) {
    const LocalBuffer& buffer = context.memory.schedule().buffer(box.at.buffer);
    return context.memory.of(box.at.buffer) +
           stretch_of(buffer.shape, box.at.lo, box.extents).value() * size_bytes(buffer.dtype);
  }

  CollectiveKind kind_;
  Group group_;
  std::shared_ptr<MpiCommunicator> comm_;
  int rank_;
  const std::byte* input_;
  std::byte* output_;
  std::int64_t count_;  // in bytes, or in elements of type_
  MPI_Datatype type_ = MPI_BYTE;
  MPI_Op op_ = MPI_OP_NULL;
};

}  // namespace

std::unique_ptr<PreparedLaunch> make_native_launch(const LaunchContext& context,
                                                   const NativeCollective& work) {
  return std::make_unique<NativeLaunch>(context, work);
}

SchedulePolicy schedule_policy(const WorldOptions& options) {
  return {[most = options.collective_bytes](const CollectiveFacts& facts) {
    if (facts.folds() &&
        ((facts.dtype != DType::I32 && facts.dtype != DType::I64) || facts.divisor != 1))
      return false;
    return facts.contiguous && facts.operand_bytes <= most;
  }};
}

std::vector<std::shared_ptr<MpiCommunicator>> make_groups(const Plan& plan, World& world) {
  std::vector<std::shared_ptr<MpiCommunicator>> out(plan.steps.size());
  SchedulePolicy policy = schedule_policy(world.options);
  bool waited = false;
  for_each_collective(plan, [&](StepId step, const CollectiveFacts& facts) {
    if (!policy.native(facts)) return;
    for (const std::vector<Rank>& ranks : groups_of(plan, step)) {
      Group group;
      for (Rank rank : ranks) group.push_back(to_int(rank));
      if (!waited && !world.groups.has(group)) {
        // Making a communicator blocks without a limit, so first make sure that all processes are
        // here.
        world.barrier("making communicators");
        waited = true;
      }
      // A rank is in at most one group of a step.
      if (std::shared_ptr<MpiCommunicator> mine =
              world.groups.get(world.comm.get(), world.rank, group))
        out[to_index(step)] = std::move(mine);
    }
  });
  return out;
}

}  // namespace reshard::backends::mpi
