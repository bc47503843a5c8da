// SPDX-License-Identifier: BSD-3-Clause
// Renumberings of a job's ranks that change neither what has to move nor the machine. A packing of
// one commodity per orbit, copied by all of them, is a packing of all: the work shrinks by the size
// of the group, and equal loads on equal links let max-min sharing waste nothing.
//
// The renumberings tried are translations of mesh coordinates. Every axis is written in digits, its
// prime factors, most significant first, those that lead to other nodes before those within one;
// each digit may be shifted (modulo its prime). A dim that is cut by some digits in the source and
// by others in the destination ties them, from the outermost on: the pieces of both stay above each
// other only if tied digits shift together. So the classes of tied digits give the generators; they
// commute, each is of prime order. Every one is then tested against the commodities and the
// machine, and left out where it does not hold, as with uneven shapes: the result is always right
// and sometimes small.
//
// A group of more than 2^13 copied hops per commodity is cut to a subgroup. Generators that keep
// every rank in its node stay longest: they are what keeps a node's NICs equally busy. Then those
// that move commodities: copies of trees within a commodity are steps and messages, and balance
// could be had with fewer.
#pragma once

#include <cstdint>
#include <vector>

#include "core/layout/request.h"
#include "core/packing/commodity.h"
#include "core/topology/topology.h"

namespace reshard {

class Symmetry {
 public:
  struct Generator {
    std::vector<Slot> slot;               // by slot: its image
    std::vector<std::int32_t> commodity;  // by commodity: its image
    std::int32_t order;                   // prime
  };

  // None but the identity.
  Symmetry() = default;
  // `ranks` by slot: those of the request, each once.
  Symmetry(const Request& request, const std::vector<Rank>& ranks, const Topology& topology,
           const Commodities& commodities);

  const std::vector<Generator>& generators() const { return generators_; }
  std::int64_t size() const;

 private:
  std::vector<Generator> generators_;
};

// Walks through all elements of the group: the images of some slots and commodities under each.
class SymmetryWalk {
 public:
  explicit SymmetryWalk(const Symmetry& symmetry, std::size_t slots, std::size_t commodities);
  Slot slot(Slot of) const { return slots_[to_index(of)]; }
  std::int32_t commodity(std::int32_t of) const { return commodities_[to_index(of)]; }
  // To the next element; false where all were seen.
  bool next();

 private:
  const Symmetry& symmetry_;
  std::vector<std::int32_t> power_;  // by generator
  std::vector<Slot> slots_;
  std::vector<std::int32_t> commodities_;
};

}  // namespace reshard
