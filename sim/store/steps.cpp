// SPDX-License-Identifier: BSD-3-Clause
#include "sim/store/steps.h"

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/bytes/box_copy.h"
#include "core/bytes/box_fold.h"

namespace reshard::sim {
namespace {

class StoreRun : public Operations {
 public:
  StoreRun(const Plan& plan, StoreMemory& memory) : plan_(plan), memory_(memory) {}

  void copy(const Place& from, const Place& to, const DimVector& extents) override {
    Shape source = checked_shape(from, extents), destination = checked_shape(to, extents);
    RESHARD_CHECK(from.buffer != to.buffer || from.slot != to.slot,
                  fmt::format("buffer {} is copied to itself", to_index(from.buffer)));
    std::byte* out = memory_.write(to.buffer, to.slot);
    copy_box(out, {destination, to.lo}, memory_.read(from.buffer, from.slot), {source, from.lo},
             extents, plan_.element_bytes(to.buffer));
    count(to, extents);
  }

  void fill(const Place& to, const DimVector& extents) override {
    Shape shape = checked_shape(to, extents);
    clear_box(memory_.write(to.buffer, to.slot), {shape, to.lo}, extents,
              plan_.element_bytes(to.buffer));
    count(to, extents);
  }

  void fold(ReduceOp op, std::int64_t divisor, std::span<const Place> operands, const Place& to,
            const DimVector& extents) override {
    Shape shape = checked_shape(to, extents);
    BoxFold fold(memory_.write(to.buffer, to.slot), shape, to.lo, extents);
    for (const Place& operand : operands) {
      RESHARD_CHECK(operand.buffer != to.buffer || operand.slot != to.slot,
                    fmt::format("buffer {} is reduced to itself", to_index(operand.buffer)));
      fold.add_operand(memory_.read(operand.buffer, operand.slot), checked_shape(operand, extents),
                       operand.lo);
    }
    fold.run(op, plan_.dtype(to.buffer), divisor);
    count(to, extents);
  }

  std::int64_t written() const { return written_; }

 private:
  // The buffer's shape on the slot, which holds the box.
  Shape checked_shape(const Place& place, const DimVector& extents) const {
    auto [slot, buffer, lo] = place;
    RESHARD_CHECK(to_index(buffer) < plan_.buffers.size() &&
                      static_cast<std::size_t>(slot) < plan_.slot_count() &&
                      plan_.buffer(buffer).exists(slot),
                  fmt::format("slot {} has no buffer {}", slot, to_index(buffer)));
    Shape shape = plan_.buffer(buffer).shape(slot);
    Box box = box_at(lo, extents);
    RESHARD_CHECK(box.dims() == shape.size() && contains(box_of(shape), box),
                  fmt::format("box {} lies outside buffer {} [{}] of slot {}", text(box),
                              to_index(buffer), text(shape), slot));
    return shape;
  }

  void count(const Place& to, const DimVector& extents) {
    written_ += element_count(extents) * plan_.element_bytes(to.buffer);
  }

  const Plan& plan_;
  StoreMemory& memory_;
  std::int64_t written_ = 0;
};

}  // namespace

std::int64_t run_step(const Plan& plan, Forwarding& forwarding, StepId step, StoreMemory& memory) {
  StoreRun run(plan, memory);
  forwarding.run(step, run);
  return run.written();
}

}  // namespace reshard::sim
