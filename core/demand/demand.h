// SPDX-License-Identifier: BSD-3-Clause
// What must end up where, for all tensors of a job, as plain data. Planners read it; the proof does
// not, so that an error in here is caught.
//
// A job is one request or many that are moved together. Tensors with equal requests, as in most
// layers of a model, form a *kind*: which rank holds and needs which elements is computed once per
// kind.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/ids.h"
#include "core/demand/box_items.h"
#include "core/demand/dim_overlap.h"
#include "core/layout/request.h"
#include "core/layout/zero_axes.h"

namespace reshard {

// The ranks that hold the same elements of the same addend, replicas of each other: a number below
// TensorKind::holder_sets().
using HolderSet = std::int32_t;

// Tensors with equal requests, and the tables about them that planners use repeatedly, indexed by
// the job's slots instead of by rank. If both layouts are products, their items (items.h) come from
// tables dim by dim; otherwise they are boxes.
class TensorKind {
 public:
  // `ranks`: the job's, ascending. The request must outlive this.
  TensorKind(const Request& request, const std::vector<Rank>& ranks);

  const Request& request() const { return *request_; }
  std::vector<TensorId> tensors;  // ascending, at least one

  std::vector<Slot> source_slot, destination_slot;  // by mesh position
  int dims() const { return std::max(1, request_->shape().size()); }
  std::int64_t element_bytes() const { return size_bytes(request_->dtype()); }
  bool folds() const { return request_->fold().fold_count > 1; }
  // At most `most` + 1.
  std::int64_t item_count(std::int64_t most) const;

  // ---- holders

  std::size_t holder_sets() const { return boxes_ ? sets_.size() : source_slot.size(); }
  std::size_t holder_count(HolderSet set) const {
    return boxes_ ? sets_[to_index(set)]->size() : product_->source.replica_offsets().size();
  }
  // The position in the source mesh of the set's i-th rank; ascends with i.
  std::int32_t holder(HolderSet set, std::size_t i) const {
    return boxes_ ? (*sets_[to_index(set)])[i] : set + product_->source.replica_offsets()[i];
  }
  // By the `source` of an item (items.h) and one of its addends.
  HolderSet holder_set(std::int32_t source, std::int64_t addend) const {
    return boxes_ ? source + static_cast<HolderSet>(addend)
                  : source + product_->source.addend_offsets()[to_index(addend)];
  }
  // The least number of replicas that any part has.
  std::size_t fewest_holders() const;

  // ---- the tables that items are made from: exactly one of these exists

  struct Product {
    ZeroAxes zero_axes;
    std::vector<DimOverlap> overlaps;  // per dim; a 0-d tensor has one
    CellPositions source, destination;
    // A rank's place in the source mesh: the sum of its piece bases, and its addend. Nothing if it
    // is not in the mesh. By slot.
    struct Standing {
      std::int32_t base;
      std::int64_t addend;
    };
    std::vector<std::optional<Standing>> standings;
  };
  const Product* product() const { return product_ ? &*product_ : nullptr; }
  const BoxItems* boxes() const { return boxes_.get(); }

 private:
  const Request* request_;
  std::optional<Product> product_;
  std::shared_ptr<const BoxItems> boxes_;
  std::vector<const std::vector<std::int32_t>*> sets_;  // by HolderSet: into boxes_
};

class Demand {
 public:
  // At least one request; they must outlive this.
  explicit Demand(std::span<const Request> requests);
  // A job of one.
  Demand(const Request& request) : Demand(std::span(&request, 1)) {}

  std::span<const Request> requests() const { return requests_; }
  // Counts the tensors of a series one by one.
  std::int64_t tensor_count() const { return reshard::tensor_count(requests_); }
  // The ranks of all requests, ascending. A rank's *slot* is its index here.
  const std::vector<Rank>& ranks() const { return ranks_; }
  Slot slot_of(Rank rank) const;
  // The most dims of any tensor, at least 1: the number of dims of the job's plan.
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
