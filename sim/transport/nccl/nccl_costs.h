// SPDX-License-Identifier: BSD-3-Clause
// Duration of an NCCL operation that is alone on its machine.
//
// NCCL's own constants (nccl_tuner.h) choose the algorithm and the protocol; this is the cost of
// the choice: a form with shared constants, fitted once to all-reduce, all-gather, reduce-scatter
// and all-to-all on 8 x A100 and 8 x H100 (traces/measurements), and a few parameters of the
// machine (core/topology/machine.h), which `reshard calibrate` fits. S bytes as nccl-tests counts
// them, n ranks, k = n-1 steps of a ring (2(n-1) for all-reduce), r the rate of the rings that
// NCCL's search finds, B = efficiency x r, x = S / (n B), hyp(a, b) = sqrt(a^2 + b^2):
//
//   ring LL       g launch + k hyp(g hop, S/n / LL rate)     g grows from 1 to 1 + kappa while the
//                                                            ranks' parts grow from 4 to 8 KiB
//   ring LL128    2.81 launch + k (0.63 hop + x / 0.755)
//   ring Simple   2.88 launch' + k hyp(8.85 hop', x) + delta S/n / copy + 0.29 min(S/n, 48 MiB) / B
//   NVLS          36.8 hop + S/N + 0.37 min(S, 32 MiB) / N   N = nvls x r x n/(n+1): a port carries
//                                                            n+1 parts of n
//   all-to-all    latency(bytes a pair) + D(S) + 0.41 D(min(S, 16 MiB)); D joins links and thread
//                                                            blocks by a 4-norm
//   lone message  over NVLink hyp(latency, D), with a latency of 1.75 launch from 64 KiB on, and D
//                 of 1.05 B and of thread blocks twice as fast; otherwise latency + time of the
//                 thread blocks. Fitted to sends and receives on A100 and H100 (Kineto's medians)
//
// A message of several ranges also waits for its packing, a figure per range; the default is a
// first-order estimate, not a measurement: one box of a packing kernel that handles thousands at a
// time. A rank copies its own part at a rate of its GPU, copy. launch' and hop' are launch x
// simple.launch and hop x simple.hop. Trees, and rings between nodes, take the time that NCCL's
// model predicts. IEEE double, + - * / and sqrt only, in a fixed order; times in us.
#pragma once

#include <cstdint>
#include <span>

#include "core/topology/topology.h"
#include "sim/transport/nccl/nccl_graph.h"
#include "sim/transport/nccl/nccl_tuner.h"

namespace reshard::sim::nccl {

// A machine's parameters, stated or derived from its class of GPU.
struct Parameters {
  double launch_us, hop_nvlink_us, hop_pcie_us, hop_host_us;
  double simple_launch, simple_hop;
  double efficiency, nvls_efficiency;
  double cta_gb_per_s, range_us;
  double hop_us(PathClass path_class) const;
};
// Default of a figure for a machine that does not state it.
std::int64_t default_figure(Figure which, int compute_capability);
Parameters parameters_of(const Topology& topology);
// Maximum number of channels of a send to one peer; NCCL connects all of them at its first use.
int channels_per_peer(const CommunicatorShape& communicator, bool network);

class Costs {
 public:
  Costs(const Constants& constants, const Parameters& parameters,
        const CommunicatorShape& communicator)
      : constants_(constants),
        machine_(parameters),
        comm_(communicator),
        tuner_(constants, comm_) {}

  const CommunicatorShape& communicator() const { return comm_; }
  Choice choose(Function function, std::int64_t bytes) const {
    return tuner_.choose(function, bytes);
  }
  double time_us(Function function, const Choice& choice, std::int64_t bytes) const;

  // Grouped sends and receives: time from a rank's call to the first byte of a message of `bytes`.
  // `network`: to another node.
  double message_latency_us(std::int64_t bytes, bool network) const;
  // Time in which a rank sends or receives `bytes` in total, to or from several peers, with
  // `channels` thread blocks together. NVLink is the GPU's own; other links are left to the engine.
  double transfer_us(std::int64_t bytes, int channels) const;
  // The total time of a message, and the part in which its bytes move.
  struct MessageTime {
    double time_us, moving_us;
  };
  // A message of ranks that do nothing else: no thread block works for another message, and nothing
  // moves in the other direction.
  MessageTime lone_message(std::int64_t bytes, bool network) const;
  // Thread blocks of a message, by NCCL's rules.
  int channels_per_message(std::int64_t bytes, bool network) const;
  // Time of an all-to-all with messages of `bytes`.
  double all_to_all_us(std::int64_t bytes) const;
  double ring_gb_per_s() const { return machine_.efficiency * bus(); }
  double cta_gb_per_s() const { return machine_.cta_gb_per_s; }
  // Time for which a message waits until its ranges are packed.
  double packing_us(std::int64_t ranges) const {
    return static_cast<double>(ranges - 1) * machine_.range_us;
  }

 private:
  // Rate of all rings together. On PCIe it is what the links carry, not the speed steps of the
  // search.
  double bus() const {
    bool nvlink = comm_.ring.within <= PathClass::NVB || comm_.nodes > 1 || comm_.on_node <= 0;
    return nvlink ? comm_.ring.channels * comm_.ring.intra : comm_.on_node;
  }
  double grown_latency_us(std::int64_t bytes, double high) const;
  double ring_us(Function function, Protocol protocol, double bytes) const;
  double nvls_us(Function function, double bytes) const;

  const Constants& constants_;
  Parameters machine_;
  CommunicatorShape comm_;
  Tuner tuner_;
};

}  // namespace reshard::sim::nccl
