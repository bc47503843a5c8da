// SPDX-License-Identifier: BSD-3-Clause
// The operations of a plan without needless packing, for executors that reach all ranks' memory and
// run steps in listed order.
//
// What is copied into a temporary and read from it again is read where it came from: every element
// is written once and a source never, so it still lies there. A gather on an inner dim, which a
// plan writes as copies into a block, the collective and copies out of it, becomes one copy per
// box; operands that an exchange brings together are folded where they lie. Temporaries that a fold
// or a fill writes stay, as do all where copies into temporaries are very many.
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/lowering.h"
#include "core/schedule/temporaries.h"

namespace reshard {

class Forwarding : private Operations {
 public:
  // The plan must be proved and outlive this. Without `forwards` the operations are the plan's own.
  explicit Forwarding(const Plan& plan, bool forwards = true);

  // The operations of a step. Steps in listed order; step 0 begins anew.
  void run(StepId step, Operations& out);

  // Of the buffers that are left, over all operations that run() hands out: see lives_of. A buffer
  // that none writes or reads has -1.
  const Lives& lives() const { return lives_; }

 private:
  class Survey;
  class LifeCount;
  // A box that holds what lies at `origin`.
  struct Alias {
    Box box;
    Place origin;
  };

  void copy(const Place& from, const Place& to, const DimVector& extents) override;
  void fill(const Place& to, const DimVector& extents) override { out_->fill(to, extents); }
  void fold(ReduceOp op, std::int64_t divisor, std::span<const Place> operands, const Place& to,
            const DimVector& extents) override;
  void then() override { out_->then(); }

  // Plans that were not proved are refused, not believed.
  std::size_t at(const Place& place) const;
  // Where the parts of a box lie; boxes within it, which they cover.
  std::vector<Alias> origins_of(const Place& place, const DimVector& extents) const;

  const Plan& plan_;
  Operations* out_ = nullptr;
  std::vector<bool> forwarded_;              // by at()
  std::vector<std::vector<Alias>> aliases_;  // by at(); empty where nothing is forwarded
  Lives lives_;
};

}  // namespace reshard
