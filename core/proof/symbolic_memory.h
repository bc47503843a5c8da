// SPDX-License-Identifier: BSD-3-Clause
// The contents of every buffer on every rank during the proof's symbolic run.
//
// Contents start empty, except the source's, which are its layout's index set with the rank's
// addend. A read must be fully covered by pieces that the reader is ordered after. Coverage is
// measured by volume, which is sound because a check at the end shows that nothing was written
// twice. Faults are thrown as Refuted, which only the proof catches.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/layout/zero_axes.h"
#include "core/plan/step_order.h"
#include "core/proof/contents.h"
#include "core/proof/proof.h"

namespace reshard {

struct Refuted {
  Refutation refutation;
};

class SymbolicMemory {
 public:
  // How a read must follow a write: by the plan's dependencies, or in listed order.
  enum class Order : std::uint8_t { Dependencies, Listed };
  // Loads the sources. The plan must outlive this and have passed check_structure.
  explicit SymbolicMemory(const Plan& plan, Order order = Order::Dependencies);

  // Sets the step that the following reads and writes belong to.
  void begin(std::int32_t step) {
    step_ = step;
    part_.reset();
    reads_own_ = false;
  }
  // Sets the part of the step (see Refutation) that they belong to.
  void begin_part(std::size_t part) { part_ = part; }
  // Allows the rest of the step to read what it wrote.
  void read_own() { reads_own_ = true; }
  std::int32_t step() const { return step_; }
  FoldSets& folds() { return folds_; }
  int rank(Slot slot) const { return to_int(plan_.ranks[slot]); }

  // Visits the pieces of `box` that `slot` reads, and checks coverage and order.
  template <class Visit>
  void read(BufferId buffer, Slot slot, const Box& box, Visit&& visit) {
    // A second reference, so that writes during the visit go to a copy.
    ContentsRef held = contents(buffer, slot);
    std::int64_t covered = !held ? 0 : held->read(box, [&](const KnownBox& piece) {
      check_order(buffer, slot, piece);
      visit(piece);
    });
    check_covered(buffer, slot, box, covered);
  }
  // Writes a piece that was read at `from` to the same position relative to `to`.
  void write(BufferId buffer, Slot slot, KnownBox piece, const DimVector& from,
             const DimVector& to);
  // Writes what a collective leaves on all ranks of a group, as shared contents if possible. The
  // pieces are those that write() would leave.
  void write_on_all(BufferId buffer, std::span<const Slot> group,
                    const std::shared_ptr<Contents>& result);
  // `piece` moved and marked as written by the current step.
  KnownBox moved(KnownBox piece, const DimVector& from, const DimVector& to) const;

  // Throws "step 3 (copy) WHAT".
  [[noreturn]] void refute(const std::string& what) const;

  // After the last step.
  void check_single_writes() const;
  void check_destinations();

 private:
  // Null: nothing written. Shared by ranks with equal contents.
  using ContentsRef = std::shared_ptr<Contents>;

  ContentsRef& contents(BufferId buffer, Slot slot) {
    return contents_[to_index(buffer) * plan_.slot_count() + to_index(slot)];
  }
  void move(KnownBox& piece, const DimVector& from, const DimVector& to) const;
  void put(BufferId buffer, Slot slot, const KnownBox& piece);
  void load_sources();
  void check_order(BufferId buffer, Slot slot, const KnownBox& piece) const;
  void check_covered(BufferId buffer, Slot slot, const Box& box, std::int64_t covered) const;
  FoldId wanted(const Request& request, std::int32_t position);
  void check_destination(TensorId tensor);
  // What a rank's destination must hold.
  struct Want {
    FoldId fold;
    const ZeroAxes& zero_axes;
    MeshCoordinate coordinate;
  };
  void check_padding(const Contents& held, TensorId tensor, Slot slot, std::int32_t position) const;
  void check_box(const Contents& held, TensorId tensor, Slot slot, const Box& box,
                 const DimVector& shift, const Want& want) const;

  const Plan& plan_;
  std::optional<StepOrder> order_;  // none: listed order
  bool reads_own_ = false;
  FoldSets folds_;
  std::vector<ContentsRef> contents_;  // [buffer * slots + slot]
  std::int64_t pieces_ = 0;
  std::int32_t step_ = -1;
  std::optional<std::size_t> part_;
};

}  // namespace reshard
