// SPDX-License-Identifier: BSD-3-Clause
// Steps carried by copy engines: cudaMemcpyPeer for messages, NCCL's collectives without thread
// blocks (NCCL_CTA_POLICY_ZERO) for gathers and all-to-alls. No multiprocessor is used.
//
//   a copy       one per range of a message. First launch x (copies of its GPU up to this one /
//                engines, rounded up) and its route's latency; then its bytes at the rate of its
//                class: over NVLink a share of the link; through host memory a wait for the staging
//                and the first chunk, and the route's cap. A GPU with more copies than engines
//                shares these among them; several copies of a GPU share its first hop and reach
//                only a part of it
//   all_gather   every rank copies its part to every other rank of its node; between nodes one copy
//                per node goes to the peer at the same place, which copies it on chunk by chunk
//   all_to_all   a copy per pair
//   others       reductions need multiprocessors, and between nodes NICs move what NCCL's proxies
//                post: both as in the nccl transport
//
// Figures: core/topology/machine.h, `copy.*`. Defaults: launch 2.5 us (p2pBandwidthLatencyTest on
// A100, P2P on), 375 of 450 GB/s on H100 and 275 of 300 on A100 (the same test), engines as
// reported by CUDA's asyncEngineCount.
#pragma once

#include <vector>

#include "sim/transport/nccl/nccl_carrier.h"

namespace reshard::sim {

class CopyCarrier : public Carrier {
 public:
  // Keeps references to both.
  CopyCarrier(const Topology& topology, const nccl::Constants& constants);

  Transfers step(const Plan& plan, const Step& step) override;
  Transfers message(const PointToPoint& message) override;
  Transfers collective(const BareCollective& collective) override;

 private:
  // Appends the copies of a gather or an all-to-all of one group, with parts numbered from
  // `first_part`; `bytes` as Expansion's elements.
  void add_copies(CollectiveKind kind, std::span<const Rank> ranks, std::int32_t first_part,
                  std::int64_t bytes, std::vector<Flow>& flows) const;
  // Sets the terms of copies between parts, which are on `ranks`; a flow that has a latency waits
  // that long for its first chunk. `communicator` is that of flows across the network.
  void price(std::span<const Rank> communicator, std::span<const Rank> ranks,
             std::vector<Flow>& flows);
  // `before`: copies of the source launched earlier; `of_source`: its number of messages.
  Terms copy_terms(const Flow& flow, Rank source, Rank destination, std::int64_t before,
                   std::int64_t of_source) const;
  std::int64_t figure(Figure which) const;

  const Topology& topology_;
  nccl::NcclCarrier nccl_;
};

}  // namespace reshard::sim
