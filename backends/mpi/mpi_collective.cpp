// SPDX-License-Identifier: BSD-3-Clause
// Collectives as MPI's own, nonblocking, on the group's communicator.
//
// All-gather and all-to-all move bytes. A reduction is left to MPI only where any order and
// association of its operands give the same bits: integers, without a division. Sums and products
// go as unsigned integers, which wrap around as ours do and whose overflow is defined. Of 32 and 64
// bits only: vectorised sums of 8 and 16 bits saturate in Open MPI 4.1, and MPICH 4.0 takes the
// least and largest unsigned byte by its sign.
#include "backends/mpi/collective.h"
#include "core/base/errors.h"

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

class MpiCollectivePart : public Part {
 public:
  MpiCollectivePart(const PartContext& context, const CollectiveStep& step, Group group)
      : kind_(step.kind), group_(std::move(group)), comm_(context.comm), rank_(context.world.rank) {
    input_ = context.memory.of(step.input);
    output_ = context.memory.of(step.output);
    std::int64_t in = context.plan.buffer(step.input).elements(context.slot),
                 out = context.plan.buffer(step.output).elements(context.slot);
    std::int64_t bytes = context.element_bytes();
    switch (kind_) {
      case CollectiveKind::AllGather:
        count_ = in * bytes;
        break;
      case CollectiveKind::AllToAll:
        count_ = in / step.group_size * bytes;
        break;
      case CollectiveKind::ReduceScatter:
      case CollectiveKind::AllReduce:
        count_ = out;
        // min and max tell signed from unsigned, the others do not.
        type_ = integer_type(context.plan.request().dtype(),
                             step.op != ReduceOp::Min && step.op != ReduceOp::Max);
        op_ = mpi_op(step.op);
        break;
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
  CollectiveKind kind_;
  Group group_;
  std::shared_ptr<Communicator> comm_;
  int rank_;
  const std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  std::int64_t count_ = 0;  // of bytes, or of elements of type_
  MPI_Datatype type_ = MPI_BYTE;
  MPI_Op op_ = MPI_OP_NULL;
};

}  // namespace

bool mpi_may_fold(const CollectiveStep& step, DType dtype) {
  return (dtype == DType::I32 || dtype == DType::I64) && step.divisor == 1;
}

std::unique_ptr<Part> make_mpi_collective(const PartContext& context, const CollectiveStep& step,
                                          Group group) {
  return std::make_unique<MpiCollectivePart>(context, step, std::move(group));
}

}  // namespace reshard::backends::mpi
