// SPDX-License-Identifier: BSD-3-Clause
// What a launch of the NCCL stand-in does to bytes: it posts everything that it has to send when it
// starts, then takes what has arrived for it.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/errors.h"
#include "core/bytes/box_fold.h"
#include "tests/support/standins/nccl_standin.h"

namespace reshard::test {

using namespace reshard::backends::nccl;

namespace {

DType dtype_of(NcclType type) {
  switch (type) {
    case NcclType::Int8:
      return DType::I8;
    case NcclType::Uint8:
      return DType::U8;
    case NcclType::Int32:
      return DType::I32;
    case NcclType::Int64:
      return DType::I64;
    case NcclType::Float16:
      return DType::F16;
    case NcclType::Float32:
      return DType::F32;
    case NcclType::Float64:
      return DType::F64;
    case NcclType::Bfloat16:
      return DType::BF16;
  }
  throw NcclMisuse("a type that NCCL does not have");
}

ReduceOp reduce_op_of(NcclOp op) {
  return op == NcclOp::Sum    ? ReduceOp::Sum
         : op == NcclOp::Prod ? ReduceOp::Product
         : op == NcclOp::Max  ? ReduceOp::Max
                              : ReduceOp::Min;
}

const char* name(NcclCall call) {
  constexpr const char* kNames[] = {"send",           "receive",    "all_gather",
                                    "reduce_scatter", "all_reduce", "all_to_all"};
  return kNames[static_cast<std::size_t>(call)];
}

bool is_collective(const NcclOperation& operation) {
  return operation.call != NcclCall::Send && operation.call != NcclCall::Receive;
}

std::int64_t bytes_of(const NcclOperation& operation) {
  return operation.count * size_bytes(dtype_of(operation.type));
}

std::int32_t global_rank(const NcclHandle& handle, int rank) {
  const NcclHandle* member = handle.family->members[static_cast<std::size_t>(rank)];
  return member == nullptr ? -1 : member->global_rank;
}

// One launch while the world's lock is held and its device is open.
class Carrier {
 public:
  Carrier(NcclWorld& world, NcclLaunch& launch)
      : world_(world),
        launch_(launch),
        handle_(*launch.handle),
        family_(*handle_.family),
        size_(static_cast<std::int64_t>(family_.members.size())) {}

  void post() {
    for (NcclOperation& operation : launch_.operations) {
      if (operation.call == NcclCall::Send)
        post_send(operation);
      else if (is_collective(operation))
        post_collective(operation);
      else
        handle_.device->check_range(operation.to, bytes_of(operation), "ncclRecv");
    }
    world_.activity();
  }

  bool take() {
    bool all = true;
    for (NcclOperation& operation : launch_.operations) {
      if (!operation.done && (operation.call == NcclCall::Send ? operation.message->taken
                              : is_collective(operation)       ? take_collective(operation)
                                                               : receive(operation))) {
        operation.done = true;
        world_.activity();
      }
      all = all && operation.done;
    }
    return all;
  }

 private:
  std::vector<std::byte> snapshot(const std::byte* from, std::int64_t bytes, const char* what) {
    handle_.device->check_range(from, bytes, what);
    return {from, from + bytes};
  }

  void post_send(NcclOperation& operation) {
    operation.message = std::make_shared<NcclMessage>(
        NcclMessage{snapshot(operation.from, bytes_of(operation), "ncclSend"), operation.count,
                    operation.type});
    family_.messages[{handle_.rank, operation.peer}].push_back(operation.message);
  }

  bool receive(NcclOperation& operation) {
    auto& queue = family_.messages[{operation.peer, handle_.rank}];
    if (queue.empty()) return false;
    NcclMessage& message = *queue.front();
    if (message.count != operation.count || message.type != operation.type)
      world_.misuse(fmt::format(
          "rank {} receives {} x type {} from rank {}, which sends {} x type {}",
          handle_.global_rank, operation.count, static_cast<int>(operation.type),
          global_rank(handle_, operation.peer), message.count, static_cast<int>(message.type)));
    if (!message.bytes.empty())
      std::memcpy(operation.to, message.bytes.data(), message.bytes.size());
    message.taken = true;
    queue.pop_front();
    return true;
  }

  void post_collective(NcclOperation& operation) {
    operation.place = handle_.next_collective++;
    if (family_.collectives.size() <= operation.place)
      family_.collectives.push_back(
          {operation.call, operation.count, operation.type, operation.op,
           std::vector<std::optional<std::vector<std::byte>>>(family_.members.size())});
    NcclCollective& shared = family_.collectives[operation.place];
    if (shared.call != operation.call || shared.count != operation.count ||
        shared.type != operation.type || shared.op != operation.op)
      world_.misuse(fmt::format(
          "collective {} of communicator {}: rank {} calls {} of {} x type {} op {}, another {} of "
          "{} x type {} op {}",
          operation.place, family_.name, handle_.global_rank, name(operation.call), operation.count,
          static_cast<int>(operation.type), static_cast<int>(operation.op), name(shared.call),
          shared.count, static_cast<int>(shared.type), static_cast<int>(shared.op)));
    bool blocks = operation.call == NcclCall::ReduceScatter || operation.call == NcclCall::AllToAll;
    shared.parts[static_cast<std::size_t>(handle_.rank)] =
        snapshot(operation.from, bytes_of(operation) * (blocks ? size_ : 1), name(operation.call));
    ++shared.came;
  }

  bool take_collective(NcclOperation& operation) {
    NcclCollective& shared = family_.collectives[operation.place];
    if (shared.came < family_.members.size()) return false;
    std::int64_t block = bytes_of(operation);
    bool whole = operation.call == NcclCall::AllGather || operation.call == NcclCall::AllToAll;
    handle_.device->check_range(operation.to, block * (whole ? size_ : 1), name(operation.call));
    auto part = [&](std::int64_t rank) {
      return shared.parts[static_cast<std::size_t>(rank)]->data();
    };
    if (whole) {
      std::int64_t mine = operation.call == NcclCall::AllToAll ? handle_.rank * block : 0;
      for (std::int64_t j = 0; j < size_; ++j)
        std::memcpy(operation.to + j * block, part(j) + mine, static_cast<std::size_t>(block));
      return true;
    }
    // An order that is not that of the ranks, but the same for all: as a ring has it, beginning
    // behind member 0.
    std::vector<const std::byte*> operands;
    std::int64_t mine = operation.call == NcclCall::ReduceScatter ? handle_.rank * block : 0;
    for (std::int64_t j = 1; j <= size_; ++j)
      operands.push_back(part((size_ - j + 1) % size_) + mine);
    fold_row(reduce_op_of(operation.op), dtype_of(operation.type), 1, operands, operation.to,
             operation.count);
    return true;
  }

  NcclWorld& world_;
  NcclLaunch& launch_;
  NcclHandle& handle_;
  NcclFamily& family_;
  std::int64_t size_;
};

}  // namespace

std::string text(const NcclLaunch& launch) {
  std::vector<std::string> waiting;
  for (const NcclOperation& operation : launch.operations) {
    if (operation.done) continue;
    std::string peer =
        is_collective(operation)
            ? ""
            : fmt::format(" {} rank {}", operation.call == NcclCall::Send ? "to" : "from",
                          global_rank(*launch.handle, operation.peer));
    waiting.push_back(fmt::format("{} of {} x type {}{}", name(operation.call), operation.count,
                                  static_cast<int>(operation.type), peer));
  }
  return fmt::format("rank {} {} in communicator {}: {}", launch.handle->global_rank,
                     launch.started ? "waits" : "has not begun", launch.handle->family->name,
                     fmt::join(waiting, ", "));
}

bool carry_on(NcclWorld& world, NcclLaunch& launch) {
  NcclHandle& handle = *launch.handle;
  std::vector<NcclLaunch*>& running = world.running[handle.global_rank];
  auto finish = [&] {
    launch.done = true;
    --handle.outstanding;
    std::erase(running, &launch);
    world.activity();
    return true;
  };
  if (launch.done) return true;
  if (handle.aborted) return finish();  // its kernel has been told to end
  world.ensure_sound();
  if (std::find(running.begin(), running.end(), &launch) == running.end()) {
    int held = 0;
    for (const NcclLaunch* other : running) held += other->handle->blocks;
    if (held > 0 && held + handle.blocks > world.options().multiprocessors) return false;
    running.push_back(&launch);
  }
  if (launch.stuck) return false;
  if (launch.slow_polls > 0) {
    --launch.slow_polls;
    world.activity();
    return false;
  }
  Carrier carrier(world, launch);
  if (!std::exchange(launch.started, true)) carrier.post();
  return carrier.take() && finish();
}

}  // namespace reshard::test
