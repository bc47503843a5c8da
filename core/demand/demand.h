// SPDX-License-Identifier: BSD-3-Clause
// What must end where, of all tensors of a job, as plain data. Planners read it; the proof does
// not, so that an error in here is caught.
//
// A job is one request or many that are moved together. Tensors whose requests are equal, as those
// of most layers are, form a *kind*: everything about which rank holds and needs which elements is
// worked out once per kind.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/demand/dim_overlap.h"
#include "core/layout/request.h"
#include "core/layout/zero_axes.h"

namespace reshard {

// Tensors with equal requests, and what planners look up of them repeatedly, indexed by the job's
// slots instead of by rank.
class TensorKind {
 public:
  // `ranks`: the job's, ascending. The request must outlive this.
  TensorKind(const Request& request, const std::vector<Rank>& ranks);

  const Request& request() const { return *request_; }
  std::vector<TensorId> tensors;  // ascending, at least one

  ZeroAxes zero_axes;
  std::vector<DimOverlap> overlaps;  // per dim; a 0-d tensor has one
  CellPositions source_cells, destination_cells;
  std::vector<Slot> source_slot, destination_slot;  // by mesh position

  int dims() const { return static_cast<int>(overlaps.size()); }
  std::int64_t element_bytes() const { return size_bytes(request_->dtype()); }
  bool folds() const { return request_->fold().fold_count > 1; }
  // A rank's place in the source mesh: the sum of its piece bases, and its addend. Nothing if it is
  // not in the mesh.
  struct Standing {
    std::int32_t base;
    std::int64_t addend;
  };
  const std::optional<Standing>& standing(Slot slot) const { return standings_[to_index(slot)]; }

 private:
  const Request* request_;
  std::vector<std::optional<Standing>> standings_;
};

class Demand {
 public:
  // At least one request; they must outlive this.
  explicit Demand(std::span<const Request> requests);
  // A job of one.
  Demand(const Request& request) : Demand(std::span(&request, 1)) {}

  std::span<const Request> requests() const { return requests_; }
  // Ranks of any request, ascending. A rank's *slot* is its index here.
  const std::vector<Rank>& ranks() const { return ranks_; }
  Slot slot_of(Rank rank) const;
  // The most dims of any tensor, at least 1: those of the job's plan.
  int dims() const { return dims_; }
  // In the order of their first tensors.
  const std::vector<TensorKind>& kinds() const { return kinds_; }
  bool folds() const;

  // Every rank's *place*: the ranks in the order in which the requests name them, sources first. It
  // does not depend on how ranks are numbered, so planners break ties by it.
  const std::vector<Slot>& slot_at() const { return slot_at_; }    // by place
  const std::vector<Slot>& place_of() const { return place_of_; }  // by slot

 private:
  std::span<const Request> requests_;
  std::vector<Rank> ranks_;
  int dims_ = 1;
  std::vector<TensorKind> kinds_;
  std::vector<Slot> slot_at_, place_of_;
};

}  // namespace reshard
