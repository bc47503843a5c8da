// SPDX-License-Identifier: BSD-3-Clause
// Collectives: NCCL's own where its result is the store's, else bytes between all members and a
// fold here, in the order that the group declares.
#include <algorithm>
#include <utility>

#include "backends/nccl/actions.h"
#include "core/base/integers.h"

namespace reshard::backends::nccl {
namespace {

constexpr std::int64_t kAlignment = 256;

class Collective {
 public:
  Collective(const RankMemory& memory, const RankStep& part, const ActionOptions& options)
      : memory_(memory),
        step_(std::get<CollectiveStep>(memory.plan().steps[to_index(part.step)].body)),
        options_(options),
        group_(step_.group(static_cast<std::size_t>(part.group))),
        member_(part.member),
        size_(step_.group_size),
        input_bytes_(memory.bytes(step_.input)),
        output_bytes_(memory.bytes(step_.output)) {}

  std::int64_t staging_bytes() const {
    if (!reduces()) return 0;
    if (native()) return step_.divisor > 1 ? output_bytes_ : 0;
    return size_ * slot_bytes();  // the member's own slot stays empty
  }

  std::vector<Action> actions(LaunchTables& tables) const {
    switch (step_.kind) {
      case CollectiveKind::AllGather:
        if (options_.over_parent) return {gathered()};
        return {call(NativeCall::AllGather, memory_.at(step_.output), input_bytes_, NcclType::Uint8,
                     NcclOp::Sum)};
      case CollectiveKind::AllToAll:
        return {all_to_all()};
      default:
        return native() ? native_reduction(tables) : declared_reduction(tables);
    }
  }

 private:
  bool reduces() const {
    return step_.kind == CollectiveKind::ReduceScatter || step_.kind == CollectiveKind::AllReduce;
  }
  std::optional<NativeFold> native() const {
    return native_fold(step_.op, memory_.plan().request().dtype(), options_);
  }
  std::int32_t rank(std::int64_t member) const {
    return to_int(
        memory_.plan().ranks[static_cast<std::size_t>(group_[static_cast<std::size_t>(member)])]);
  }

  // Member m's part of the folded result, in elements: its output of reduce_scatter; of all_reduce
  // a share, the first shares one element larger where they cannot be equal.
  std::int64_t chunk_elements(std::int64_t m) const {
    if (step_.kind == CollectiveKind::ReduceScatter) return output_bytes_ / memory_.element_bytes();
    std::int64_t elements = input_bytes_ / memory_.element_bytes();
    return elements / size_ + (m < elements % size_ ? 1 : 0);
  }
  std::int64_t chunk_bytes(std::int64_t m) const {
    return chunk_elements(m) * memory_.element_bytes();
  }
  std::int64_t chunk_at(std::int64_t m) const {
    if (step_.kind == CollectiveKind::ReduceScatter) return m * output_bytes_;
    std::int64_t elements = input_bytes_ / memory_.element_bytes();
    return (m * (elements / size_) + std::min(m, elements % size_)) * memory_.element_bytes();
  }
  // Staging for what one member sends.
  std::int64_t slot_bytes() const { return ceil_div(chunk_bytes(0), kAlignment) * kAlignment; }

  Round call(NativeCall call, std::byte* to, std::int64_t count, NcclType type, NcclOp op) const {
    return {{}, {}, Native{call, memory_.at(step_.input), to, count, type, op}};
  }

  Round gathered() const {
    Round round;
    for (std::int64_t m = 0; m < size_; ++m) {
      round.sends.push_back({memory_.at(step_.input), input_bytes_, rank(m)});
      round.receives.push_back(
          {memory_.at(step_.output) + m * input_bytes_, input_bytes_, rank(m)});
    }
    return in_order(std::move(round));
  }

  Round all_to_all() const {
    std::int64_t block = input_bytes_ / size_;
    if (options_.has_all_to_all && !options_.over_parent)
      return call(NativeCall::AllToAll, memory_.at(step_.output), block, NcclType::Uint8,
                  NcclOp::Sum);
    Round round;
    for (std::int64_t m = 0; m < size_; ++m) {
      round.sends.push_back({memory_.at(step_.input) + m * block, block, rank(m)});
      round.receives.push_back({memory_.at(step_.output) + m * block, block, rank(m)});
    }
    return in_order(std::move(round));
  }

  std::vector<Action> native_reduction(LaunchTables& tables) const {
    NativeFold fold = *native();
    bool divides = step_.divisor > 1;
    NativeCall kind =
        step_.kind == CollectiveKind::AllReduce ? NativeCall::AllReduce : NativeCall::ReduceScatter;
    std::byte* folded = divides ? memory_.staging() : memory_.at(step_.output);
    std::vector<Action> out{
        call(kind, folded, output_bytes_ / memory_.element_bytes(), fold.type, fold.op)};
    if (divides) {
      const std::byte* operand = folded;
      FoldTiles tiles(output_bytes_, memory_.element_bytes());
      tiles.fold_bytes(memory_.at(step_.output), std::span(&operand, 1), output_bytes_);
      out.push_back(
          Kernel{tables.add(tiles, step_.op, memory_.plan().request().dtype(), step_.divisor)});
    }
    return out;
  }

  std::vector<Action> declared_reduction(LaunchTables& tables) const {
    std::byte *input = memory_.at(step_.input), *output = memory_.at(step_.output),
              *staging = memory_.staging();
    bool all = step_.kind == CollectiveKind::AllReduce;
    std::int64_t mine = chunk_bytes(member_);
    Round scatter, gather;
    std::vector<const std::byte*> operands;
    std::byte* folded = all ? output + chunk_at(member_) : output;
    for (std::int64_t m = 0; m < size_; ++m) {
      operands.push_back(m == member_ ? input + chunk_at(member_) : staging + m * slot_bytes());
      if (m == member_) continue;
      if (chunk_bytes(m) > 0)
        scatter.sends.push_back({input + chunk_at(m), chunk_bytes(m), rank(m)});
      if (mine > 0) scatter.receives.push_back({staging + m * slot_bytes(), mine, rank(m)});
      if (mine > 0) gather.sends.push_back({folded, mine, rank(m)});
      if (chunk_bytes(m) > 0)
        gather.receives.push_back({output + chunk_at(m), chunk_bytes(m), rank(m)});
    }
    FoldTiles tiles(mine, memory_.element_bytes());
    if (mine > 0) tiles.fold_bytes(folded, operands, mine);
    std::vector<Action> out;
    out.push_back(in_order(std::move(scatter)));
    out.push_back(
        Kernel{tables.add(tiles, step_.op, memory_.plan().request().dtype(), step_.divisor)});
    if (all) out.push_back(in_order(std::move(gather)));
    return out;
  }

  static Round in_order(Round round) {
    auto by_peer = [](const Transfer& a, const Transfer& b) { return a.peer < b.peer; };
    std::sort(round.sends.begin(), round.sends.end(), by_peer);
    std::sort(round.receives.begin(), round.receives.end(), by_peer);
    return round;
  }

  const RankMemory& memory_;
  const CollectiveStep& step_;
  const ActionOptions& options_;
  std::span<const Slot> group_;
  std::int64_t member_, size_, input_bytes_, output_bytes_;
};

}  // namespace

std::int64_t collective_staging_bytes(const RankMemory& memory, const RankStep& part,
                                      const ActionOptions& options) {
  return Collective(memory, part, options).staging_bytes();
}

std::vector<Action> collective_actions(const RankMemory& memory, const RankStep& part,
                                       const ActionOptions& options, LaunchTables& tables) {
  return Collective(memory, part, options).actions(tables);
}

}  // namespace reshard::backends::nccl
