// SPDX-License-Identifier: BSD-3-Clause
// Transports: what carries the steps of a plan, and its costs beyond the links.
//
//   ideal        links only, rings over every NIC: what bounds are compared with
//   nccl         collectives and grouped sends and receives as in NCCL: algorithm and protocol
//                chosen by its own model, timed by calibrated costs (nccl_costs.h). An operation
//                that is alone takes exactly the time of its cost form, to the picosecond; its
//                bytes still use the links, so that two operations on one link slow each other
//   copy-engine  messages as copies of cudaMemcpyPeer, gathers and all-to-alls as NCCL's without
//                thread blocks (copy_carrier.h); reductions as in nccl
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/bounds/capacity.h"
#include "core/topology/topology.h"
#include "sim/network/carrier.h"

namespace reshard::sim {

// Throws InputError.
TransportKind parse_transport(std::string_view text, std::string_view field);

// What its collectives require of switches that can reduce.
Switches switches_of(TransportKind kind);

struct TransportOptions {
  std::optional<TransportKind> kind = {};  // none: the topology's own, else ideal
  std::string nccl_version = {};           // "": the topology's own, else the newest known
};

// One transport on one topology, and the ideal one. They cache what they compute about ranks.
class Carriage {
 public:
  // Throws InputError for an unknown version.
  Carriage(std::shared_ptr<const Topology> topology, const TransportOptions& options);

  TransportKind kind() const { return kind_; }
  Carrier* carrier() const { return carrier_ ? carrier_.get() : ideal(); }
  Carrier* ideal() const { return ideal_.get(); }

 private:
  std::shared_ptr<const Topology> topology_;
  TransportKind kind_;
  std::unique_ptr<Carrier> ideal_, carrier_;  // carrier_ is null if the kind is Ideal
};

}  // namespace reshard::sim
