// SPDX-License-Identifier: BSD-3-Clause
// Transports: what carries the steps of a plan, and what that costs beside the links.
//
//   ideal        links only: what bounds are compared with
//   nccl         collectives and grouped sends and receives as NCCL does them: an algorithm and a
//                protocol chosen by its own model, timed by calibrated costs (nccl_costs.h). An
//                operation that is alone takes its form's time to the picosecond; meanwhile its
//                bytes go over the links, so that two operations on one link slow each other
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/topology/topology.h"
#include "sim/network/carrier.h"

namespace reshard::sim {

enum class TransportKind : std::uint8_t { Ideal, Nccl };
std::string_view text(TransportKind kind);  // "ideal", "nccl"
// Throws InputError.
TransportKind parse_transport(std::string_view text, std::string_view field);

struct TransportOptions {
  TransportKind kind = TransportKind::Ideal;
  std::string nccl_version = {};  // "": the newest known
};

// One transport on one topology. What it works out about ranks it keeps.
class Carriage {
 public:
  // Throws InputError for a version that is not known.
  Carriage(std::shared_ptr<const Topology> topology, const TransportOptions& options);

  TransportKind kind() const { return kind_; }
  Carrier* carrier() const { return carrier_.get(); }  // null: links alone

 private:
  TransportKind kind_;
  std::shared_ptr<const Topology> topology_;
  std::unique_ptr<Carrier> carrier_;
};

}  // namespace reshard::sim
