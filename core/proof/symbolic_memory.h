// SPDX-License-Identifier: BSD-3-Clause
// What every buffer on every rank holds during the proof's symbolic run.
//
// Contents start empty, but for the source, which holds its layout's index set under the rank's
// addend. Reads demand full coverage by pieces whose writers the reader is ordered after; that
// nothing was written twice is shown once in the end, and makes the coverage sound. Faults are
// thrown as Refuted, which only the proof catches.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/layout/zero_axes.h"
#include "core/proof/contents.h"
#include "core/proof/proof.h"
#include "core/schedule/step_order.h"

namespace reshard {

struct Refuted {
  Refutation refutation;
};

class SymbolicMemory {
 public:
  // What a read needs to come after a write: the plan's dependencies, or its place in the list.
  enum class Order : std::uint8_t { Dependencies, Listed };
  // Holds the source. The plan must outlive this and have passed check_structure.
  explicit SymbolicMemory(const Plan& plan, Order order = Order::Dependencies);

  // The step that reads and writes from here on.
  void begin(std::int32_t step) {
    step_ = step;
    part_.reset();
    reads_own_ = false;
  }
  // Which of its parts (see Refutation) from here on.
  void begin_part(std::size_t part) { part_ = part; }
  // From here on the step may read what it wrote.
  void read_own() { reads_own_ = true; }
  std::int32_t step() const { return step_; }
  FoldSets& folds() { return folds_; }
  int rank(Slot slot) const { return to_int(plan_.ranks[slot]); }

  // Visits what `slot` reads of `box`, checked for coverage and order.
  template <class Visit>
  void read(BufferId buffer, Slot slot, const Box& box, Visit&& visit) {
    ContentsRef held =
        contents(buffer, slot);  // a second reference: what is written meanwhile goes to a copy
    std::int64_t covered = !held ? 0 : held->read(box, [&](const KnownBox& piece) {
      check_order(buffer, slot, piece);
      visit(piece);
    });
    check_covered(buffer, slot, box, covered);
  }
  // Writes a piece read in coordinates at `from` to the same place relative to `to`.
  void write(BufferId buffer, Slot slot, KnownBox piece, const DimVector& from,
             const DimVector& to);
  // What a collective leaves alike on all ranks of a group; kept once. Pieces as write() leaves
  // them.
  void write_on_all(BufferId buffer, std::span<const Slot> group,
                    const std::shared_ptr<Contents>& result);
  // `piece` moved and marked as written by this step.
  KnownBox moved(KnownBox piece, const DimVector& from, const DimVector& to) const;

  // "step 3 (copy) WHAT".
  [[noreturn]] void refute(const std::string& what) const;

  // After the last step.
  void check_single_writes() const;
  void check_destinations();

 private:
  using ContentsRef =
      std::shared_ptr<Contents>;  // null: nothing written; shared by ranks that hold the same

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
