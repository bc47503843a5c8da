// SPDX-License-Identifier: BSD-3-Clause
// A plan's operations without needless packing, for executors that reach all ranks' memory and run
// steps in listed order.
//
// A copy out of a temporary reads the source of the copy into it instead: every element is written
// once, and a source never, so the element is still there. An all-gather on an inner dim,
// which a plan writes as copies into a block, the collective and copies out of it, becomes one copy
// per box; operands that an exchange brings together are folded in place. Temporaries that a fold
// or a fill writes are kept. All temporaries are kept where a plan has too many copies into them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/lowering.h"
#include "core/schedule/temporaries.h"

namespace reshard {

class Forwarding : private Operations {
 public:
  // The plan must be proved and outlive this. With `forwards` false, the plan's own operations.
  explicit Forwarding(const Plan& plan, bool forwards = true);

  // Produces the operations of a step. Call it for the steps in listed order; step 0 starts over.
  void run(StepId step, Operations& out);

  // Lives of the buffers that remain, over all operations that run() produces: see lives_of. -1 for
  // a buffer that none of them writes or reads.
  const Lives& lives() const { return lives_; }

 private:
  class Survey;
  class LifeCount;
  // A box that holds the values at `origin`.
  struct Alias {
    Box box;
    Place origin;
  };

  void copy(const Place& from, const Place& to, const DimVector& extents) override;
  void fill(const Place& to, const DimVector& extents) override { out_->fill(to, extents); }
  void fold(ReduceOp op, std::int64_t divisor, std::span<const Place> operands, const Place& to,
            const DimVector& extents) override;
  void then() override { out_->then(); }

  // Index of (buffer, slot). Checks both: an unproved plan must not index out of range.
  std::size_t at(const Place& place) const;
  // Where the values of a box are: boxes relative to it that together cover it.
  std::vector<Alias> origins_of(const Place& place, const DimVector& extents) const;

  const Plan& plan_;
  Operations* out_ = nullptr;
  std::vector<bool> forwarded_;              // by at()
  std::vector<std::vector<Alias>> aliases_;  // by at(); empty where nothing is forwarded
  Lives lives_;
};

}  // namespace reshard
