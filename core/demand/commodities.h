// SPDX-License-Identifier: BSD-3-Clause
// A commodity is everything that must move between the same ranks: all elements of a job, in all
// tensors, that the same ranks hold and the same ranks need. It is one string of bytes, and the
// code that moves it only deals with tensors when it cuts the string.
//
// Here and in packings a rank's *slot* is its place (Demand::place_of), so that nothing depends on
// how the ranks of a node are numbered.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "core/demand/demand.h"
#include "core/demand/items.h"

namespace reshard {

// One item of one tensor, as a part of a commodity's string.
struct CommodityPart {
  TensorId tensor;
  std::int32_t kind, item;  // Commodities::item
  std::int64_t end;         // in bytes from the string's beginning
};

struct Commodity {
  std::int64_t bytes;  // above 0
  // Per addend, the ranks that hold it, ascending; one list if nothing is folded. The lists ascend.
  std::vector<std::vector<Slot>> holders;
  // Ranks that must end up with it and do not hold it whole, ascending; at least one.
  std::vector<Slot> needers;
  // How the addends are folded, and by what the result is divided.
  ReduceOp op = ReduceOp::Sum;
  std::int64_t divisor = 1;
  std::vector<CommodityPart> parts;  // by tensor, then in the order of items
  bool folds() const { return holders.size() > 1; }
};

class Commodities {
 public:
  // The demand must outlive this.
  explicit Commodities(const Demand& demand);

  const std::vector<Commodity>& list() const { return list_; }
  const Item& item(const CommodityPart& part) const {
    return items_[to_index(part.kind)][to_index(part.item)];
  }
  const TensorKind& kind(const CommodityPart& part) const {
    return demand_->kinds()[to_index(part.kind)];
  }
  // The bytes of one item.
  std::int64_t bytes(const CommodityPart& part) const {
    return item(part).elements() * kind(part).element_bytes();
  }
  // Index of the commodity with these ends, folded in the same way as `like`.
  std::optional<std::int32_t> find(std::vector<std::vector<Slot>> holders,
                                   std::vector<Slot> needers, const Commodity& like) const;
  const Demand& demand() const { return *demand_; }
  // By slot.
  const std::vector<Rank>& ranks() const { return ranks_; }

 private:
  using Identity =
      std::tuple<std::vector<std::vector<Slot>>, std::vector<Slot>, ReduceOp, std::int64_t>;

  void add(std::int32_t kind);

  const Demand* demand_;
  std::vector<Rank> ranks_;
  std::vector<Commodity> list_;
  std::vector<std::vector<Item>> items_;  // by kind: those that some rank lacks
  std::map<Identity, std::int32_t> numbers_;
};

}  // namespace reshard
