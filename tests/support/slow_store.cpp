// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/slow_store.h"

#include <cstring>
#include <functional>

#include "tests/support/oracle.h"

namespace reshard::test {
namespace {

// visit(index within the box) for every element of extents, row-major.
void for_each_index(const DimVector& extents, const std::function<void(const DimVector&)>& visit) {
  for (std::int64_t i = 0; i < element_count(extents); ++i) {
    DimVector index(extents.size());
    std::int64_t rest = i;
    for (int d = extents.size() - 1; d >= 0; --d) {
      index[d] = rest % extents[d];
      rest /= extents[d];
    }
    visit(index);
  }
}

std::size_t at(const Shape& shape, const DimVector& lo, const DimVector& index) {
  std::int64_t out = 0;
  for (int d = 0; d < shape.size(); ++d) out = out * shape[d] + lo[d] + index[d];
  return static_cast<std::size_t>(out);
}

}  // namespace

class PreparedSlowStore : public PreparedPlan {
 public:
  explicit PreparedSlowStore(SlowStore& store)
      : store_(store),
        plan_(*store.plan_),
        width_(static_cast<std::size_t>(size_bytes(plan_.request().dtype()))) {}

  void fill(const FillSource& fill, TensorId) override {
    for (std::size_t s = 0; s < plan_.slot_count(); ++s) {
      if (!plan_.buffers[0].exists(static_cast<Slot>(s))) continue;
      SlowStore::Elements& values = store_.elements(kSourceBuffer, static_cast<Slot>(s));
      std::vector<std::byte> bytes(values.size() * width_);
      fill(plan_.ranks[s], bytes);
      for (std::size_t i = 0; i < values.size(); ++i)
        std::memcpy(&values[i], bytes.data() + i * width_, width_);
    }
  }

  Timeline run() override {
    for (const Step& step : plan_.steps)
      std::visit([this](const auto& body) { store_.run_step(body); }, step.body);
    return {};
  }

  void take(const TakeDestination& take, TensorId) override {
    for (std::size_t s = 0; s < plan_.slot_count(); ++s) {
      if (!plan_.buffers[1].exists(static_cast<Slot>(s))) continue;
      const SlowStore::Elements& values = store_.elements(kDestinationBuffer, static_cast<Slot>(s));
      std::vector<std::byte> bytes(values.size() * width_);
      for (std::size_t i = 0; i < values.size(); ++i)
        std::memcpy(bytes.data() + i * width_, &values[i], width_);
      take(plan_.ranks[s], bytes);
    }
  }

 private:
  SlowStore& store_;
  const Plan& plan_;
  std::size_t width_;
};

std::unique_ptr<PreparedPlan> SlowStore::prepare(const Plan& plan) {
  plan_ = &plan;
  memory_.clear();
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    for (std::size_t s = 0; s < plan.slot_count(); ++s)
      elements(BufferId{static_cast<std::int32_t>(b)}, static_cast<Slot>(s))
          .resize(static_cast<std::size_t>(plan.buffers[b].elements(static_cast<Slot>(s))));
  return std::make_unique<PreparedSlowStore>(*this);
}

void SlowStore::move(const Move& move, Slot source, Slot destination) {
  Shape from = plan_->buffer(move.source).shape(source),
        to = plan_->buffer(move.destination).shape(destination);
  for_each_index(move.extents, [&](const DimVector& index) {
    elements(move.destination, destination).at(at(to, move.destination_lo, index)) =
        elements(move.source, source).at(at(from, move.source_lo, index));
  });
}

void SlowStore::run_step(const CopyStep& step) {
  for (const CopyStep::SlotMoves& part : step.parts)
    for (std::uint32_t i = 0; i < part.moves.count; ++i)
      move(step.moves[part.moves.first + i], part.slot, part.slot);
}

void SlowStore::run_step(const ExchangeStep& step) {
  for (const ExchangeStep::Message& message : step.messages)
    for (std::uint32_t i = 0; i < message.moves.count; ++i)
      move(step.moves[message.moves.first + i], message.source, message.destination);
}

void SlowStore::run_step(const FillStep& step) {
  for (const FillStep::SlotFill& part : step.parts)
    for_each_index(part.box.extents(), [&](const DimVector& index) {
      elements(part.buffer, part.slot)
          .at(at(plan_->buffer(part.buffer).shape(part.slot), part.box.lo, index)) = 0;
    });
}

void SlowStore::run_step(const ReduceStep& step) {
  for (const ReduceStep::SlotFold& part : step.parts)
    for_each_index(part.extents, [&](const DimVector& index) {
      Elements operands;
      for (std::uint32_t k = 0; k < part.operand_count; ++k) {
        const ReduceStep::Operand& operand = step.operands[part.first_operand + k];
        operands.push_back(
            elements(operand.buffer, part.slot)
                .at(at(plan_->buffer(operand.buffer).shape(part.slot), operand.lo, index)));
      }
      Shape shape = plan_->buffer(part.destination).shape(part.slot);
      elements(part.destination, part.slot).at(at(shape, part.destination_lo, index)) =
          folded(step.op, plan_->request().dtype(), step.divisor, operands);
    });
}

// Blocks are contiguous, so element e of block i of a buffer of n blocks is element i * (size / n)
// + e.
void SlowStore::run_step(const CollectiveStep& step) {
  auto n = static_cast<std::size_t>(step.group_size);
  for (std::size_t g = 0; g < step.group_count(); ++g) {
    std::span<const Slot> group = step.group(g);
    auto fold = [&](std::size_t element) {
      Elements operands;
      for (Slot member : group) operands.push_back(elements(step.input, member).at(element));
      return folded(step.op, plan_->request().dtype(), step.divisor, operands);
    };
    for (std::size_t i = 0; i < n; ++i) {
      Elements& out = elements(step.output, group[i]);
      std::size_t block = out.size() / n;
      for (std::size_t e = 0; e < out.size(); ++e) switch (step.kind) {
          case CollectiveKind::AllGather:
            out[e] = elements(step.input, group[e / block]).at(e % block);
            break;
          case CollectiveKind::AllToAll:
            out[e] = elements(step.input, group[e / block]).at(i * block + e % block);
            break;
          case CollectiveKind::ReduceScatter:
            out[e] = fold(i * out.size() + e);
            break;
          case CollectiveKind::AllReduce:
            out[e] = fold(e);
            break;
        }
    }
  }
}

}  // namespace reshard::test
