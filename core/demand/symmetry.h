// SPDX-License-Identifier: BSD-3-Clause
// Renumberings of a job's ranks that change neither what must move nor the machine. A packing of
// one commodity per orbit, copied by all renumberings, is a packing of all commodities: the work
// shrinks by the size of the group, and equal loads on equal links let max-min sharing waste
// nothing.
//
// The renumberings tried are translations of mesh coordinates. Every axis is written in digits, its
// prime factors, most significant first, those that lead to other nodes before those within one;
// each digit can be shifted (modulo its prime). Digits of several meshes that shift the same ranks
// in the same way are one digit. A dim that is cut by some digits in the source and by others in
// the destination ties them, from the outermost on: the pieces of both stay aligned only if tied
// digits shift together; digits tied by one tensor are tied for all. So the classes of tied
// digits give the generators; they commute, and each is of prime order. Every generator is then
// tested against the commodities and the machine, and dropped if it fails, as with uneven shapes:
// the result is always right and sometimes small.
//
// A group of more than 2^13 copied hops per commodity, or 2^16 for a job of many tensors, is
// reduced to a subgroup by dropping generators. Those that keep every rank on its node go last:
// they keep a node's NICs equally busy. Among the others, those that move commodities go last: the
// rest copy trees within a commodity, which adds steps and messages, and fewer copies would also
// balance the load.
#pragma once

#include <cstdint>
#include <vector>

#include "core/demand/commodities.h"
#include "core/topology/topology.h"

namespace reshard {

class Symmetry {
 public:
  struct Generator {
    std::vector<Slot> slot;               // by slot: its image
    std::vector<std::int32_t> commodity;  // by commodity: its image
    std::int32_t order;                   // prime
  };

  // Only the identity.
  Symmetry() = default;
  Symmetry(const Commodities& commodities, const Topology& topology);

  const std::vector<Generator>& generators() const { return generators_; }
  std::int64_t size() const;

 private:
  std::vector<Generator> generators_;
};

// Walks through all elements of the group, and gives the images of slots and commodities under
// each.
class SymmetryWalk {
 public:
  explicit SymmetryWalk(const Symmetry& symmetry, std::size_t slots, std::size_t commodities);
  Slot slot(Slot of) const { return slots_[to_index(of)]; }
  std::int32_t commodity(std::int32_t of) const { return commodities_[to_index(of)]; }
  // Moves to the next element; false after the last.
  bool next();

 private:
  const Symmetry& symmetry_;
  std::vector<std::int32_t> power_;  // by generator
  std::vector<Slot> slots_;
  std::vector<std::int32_t> commodities_;
};

}  // namespace reshard
