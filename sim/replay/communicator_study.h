// SPDX-License-Identifier: BSD-3-Clause
// What policies of communicators make of a trace.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "core/traffic/workload.h"
#include "sim/network/carrier.h"
#include "sim/network/fault.h"
#include "sim/network/order.h"
#include "sim/trace/trace.h"
#include "sim/transport/communicators.h"

namespace reshard::sim {

struct CommunicatorResult {
  CommunicatorUse use;
  std::int64_t serialised_launches = 0;  // held back by nothing but another operation's turn
  std::int64_t end_ps = 0;
  std::string hang;  // why it does not run; then nothing but `use` is known
};

// How messages that name no communicator wait for ever where they get PyTorch's.
struct DefaultHang {
  CommunicatorPolicy policy;               // PyTorch's, without a device_id
  std::vector<CommunicatorPolicy> others;  // under which it hangs, too
  std::vector<std::int64_t> lines;
  std::string what;
};

class CommunicatorStudy {
 public:
  // Keeps references. `by_nccl` and `carriers` by operation of the trace; where `cold`, making
  // communicators takes time.
  CommunicatorStudy(const Trace& trace, const Topology& topology, OrderRules rules, bool cold,
                    const std::function<bool(OpId)>& by_nccl, std::span<Carrier* const> carriers,
                    std::span<const Fault> faults)
      : trace_(trace),
        topology_(topology),
        rules_(rules),
        cold_(cold),
        by_nccl_(by_nccl),
        carriers_(carriers.begin(), carriers.end()),
        faults_(faults) {}

  // Makes the workload one under the policy, and its order; or says why it hangs then.
  std::optional<TraceFinding> use(CommunicatorPolicy policy, Workload& workload,
                                  std::unique_ptr<const Order>& order,
                                  CommunicatorResult& result) const;
  // Whether the workload waits for ever by PyTorch's default, and by what else. Of traces of more
  // operations, where communicators alone take gigabytes, nothing is said.
  static constexpr std::size_t kMaxTried = std::size_t{1} << 18;
  std::optional<DefaultHang> default_hang(const Workload& workload) const;
  // Of a workload that ran.
  static void tell(CommunicatorResult& result, const Workload& workload, const Order& order,
                   const Timeline& timeline);
  // What the policy would give. Throws what run() throws.
  CommunicatorResult what_if(CommunicatorPolicy policy, Workload workload) const;

 private:
  std::optional<TraceFinding> hang(CommunicatorPolicy policy, Workload workload) const;
  // Whether some message that goes by NCCL names no communicator.
  bool has_plain_messages() const;

  const Trace& trace_;
  const Topology& topology_;
  OrderRules rules_;
  bool cold_;
  const std::function<bool(OpId)>& by_nccl_;
  std::vector<Carrier*> carriers_;
  std::span<const Fault> faults_;
};

}  // namespace reshard::sim
