// SPDX-License-Identifier: BSD-3-Clause
// Steps as copy engines carry them: cudaMemcpyPeer for messages, NCCL's collectives without thread
// blocks (NCCL_CTA_POLICY_ZERO) for gathers and all-to-alls. No multiprocessor works.
//
//   a copy          launch x (copies of its GPU to its own end / engines, at least 1), where each
//                   range of a message is a copy; its route's latency, then
//                   its bytes at what the class of copy allows: over NVLink a share of the link;
//                   through host memory a wait for the staging, the first chunk, and the route's
//                   cap. A GPU with more copies than engines shares these among them, and with
//                   several copies its first hop, of which they reach a share
//   all_gather      every rank copies its part to every other of its node; between nodes one copy
//                   per node goes to the peer of the same place, which copies it on chunk by chunk
//   all_to_all      a copy per pair
//   what reduces    needs multiprocessors, and between nodes NICs move what NCCL's proxies post:
//                   both as the nccl transport has them
//
// Figures: core/topology/machine.h, `copy.*`. Where they are not stated: launch 2.5 us
// (p2pBandwidthLatencyTest on A100, P2P on), 375 of 450 GB/s on H100 and 275 of 300 on A100 (the
// same test), engines as CUDA's asyncEngineCount tells them.
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
  // Appends the copies of a gather or an all-to-all of one group, whose parts count from
  // `first_part`; `bytes` as Expansion's elements.
  void add_copies(CollectiveKind kind, std::span<const Rank> ranks, std::int32_t first_part,
                  std::int64_t bytes, std::vector<Flow>& flows) const;
  // Gives terms to copies between parts, which lie on `ranks`; what has a latency, waits that long
  // for its first chunk. `communicator`: of what crosses the network.
  void price(std::span<const Rank> communicator, std::span<const Rank> ranks,
             std::vector<Flow>& flows);
  // `before`: copies of the source that are launched sooner, of `of_source` messages.
  Terms copy_terms(const Flow& flow, Rank source, Rank destination, std::int64_t before,
                   std::int64_t of_source) const;
  std::int64_t figure(Figure which) const;

  const Topology& topology_;
  nccl::NcclCarrier nccl_;
};

}  // namespace reshard::sim
